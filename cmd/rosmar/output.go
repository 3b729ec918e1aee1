package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/term"

	"github.com/rosmar-compiler/rosmar/codegen/neff"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// temps are the files that stand under a temporary name. An interrupted or failed command removes them.
var temps struct {
	sync.Mutex
	names map[string]bool
}

func removeTemps() {
	temps.Lock()
	defer temps.Unlock()
	for n := range temps.names {
		os.Remove(n)
	}
	temps.names = nil
}

// output is a product on its way: a file under a temporary name in the folder where it will stand, or a buffer for standard
// output. Nothing is visible before commit.
type output struct {
	io.WriteSeeker
	name string // "" for a stream
	file *os.File
	buf  neff.Buffer
	to   io.Writer
	pipe *os.File // closed after a stream
}

// claim gives the file that name stands for and the temporary name beside it. A second claim is refused: two products under one name would be
// one of them.
func claim(name string) (real, temp string, err error) {
	if real, err = filepath.EvalSymlinks(name); err != nil {
		real = name
	}
	key := real
	if abs, err := filepath.Abs(real); err == nil {
		key = abs
	}
	temp = filepath.Join(filepath.Dir(key), fmt.Sprintf(".%s.%d.tmp", filepath.Base(key), os.Getpid()))
	temps.Lock()
	defer temps.Unlock()
	if temps.names[temp] {
		return "", "", target.Errorf(target.User, "cannot write %s: it is the name of two outputs of this command; give each its own", name)
	}
	if temps.names == nil {
		temps.names = map[string]bool{}
	}
	temps.names[temp] = true
	return real, temp, nil
}

func unclaim(temp string) {
	temps.Lock()
	delete(temps.names, temp)
	temps.Unlock()
}

// create begins an output; "-" is standard output.
func (a *app) create(name string) (*output, error) {
	if name == "-" {
		if f, ok := a.out.Writer.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
			return nil, target.Errorf(target.User, "standard output is a terminal and this is no text; give -o FILE")
		}
		o := &output{to: a.out}
		o.WriteSeeker = &o.buf
		return o, nil
	}
	st, err := os.Stat(name)
	if err == nil && !st.Mode().IsRegular() { // a device or a pipe: a rename would replace it
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			return nil, err
		}
		o := &output{to: f, pipe: f}
		o.WriteSeeker = &o.buf
		return o, nil
	}
	real, temp, err := claim(name)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(temp, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		unclaim(temp)
		return nil, cannotWrite(name, err)
	}
	name = real
	return &output{WriteSeeker: f, name: name, file: f}, nil
}

// cannotWrite says why no file can stand under name, without the temporary name that was tried.
func cannotWrite(name string, err error) error {
	why := err
	var pe *os.PathError
	if errors.As(err, &pe) {
		why = pe.Err
	}
	if dir := filepath.Dir(name); errors.Is(err, os.ErrNotExist) {
		return target.Errorf(target.User, "cannot write %s: there is no folder %s; make it first", name, dir)
	}
	return target.Errorf(target.User, "cannot write %s: %v", name, why)
}

// commit makes the product visible under its name, in full or not at all.
func (o *output) commit() error {
	if o.file == nil {
		_, err := o.to.Write(o.buf.Bytes())
		if o.pipe != nil {
			err = errors.Join(err, o.pipe.Close())
		}
		return err
	}
	err := o.file.Close()
	if err == nil {
		err = os.Rename(o.file.Name(), o.name)
	}
	if err != nil {
		os.Remove(o.file.Name())
	}
	o.forget()
	return err
}

// discard drops the product; after commit it does nothing.
func (o *output) discard() {
	if o.file != nil {
		o.file.Close()
		os.Remove(o.file.Name())
		o.forget()
	}
}

func (o *output) forget() {
	unclaim(o.file.Name())
	o.file = nil
}

// write makes a file of what emit writes.
func (a *app) write(name string, emit func(io.Writer) error) error {
	o, err := a.create(name)
	if err != nil {
		return err
	}
	defer o.discard()
	if err := emit(o); err != nil {
		return err
	}
	return o.commit()
}
