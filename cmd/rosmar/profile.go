package main

import (
	"errors"
	"os"
	"runtime"
	"runtime/pprof"
	"runtime/trace"

	"github.com/spf13/pflag"
)

// profiles are the runtime's own, of rosmar itself. Passes carry the labels pass and func.
type profiles struct {
	cpu, mem, trace string
	open            []*os.File
	claims          []string
}

func (p *profiles) flags(fs *pflag.FlagSet) {
	fs.StringVar(&p.cpu, "cpuprofile", "", "write a CPU profile of rosmar to `FILE` (samples carry the labels pass and func)")
	fs.StringVar(&p.mem, "memprofile", "", "write a heap profile of rosmar to `FILE`")
	fs.StringVar(&p.trace, "trace", "", "write an execution trace of rosmar to `FILE`")
}

func (p *profiles) create(name string) (*os.File, error) {
	if st, err := os.Stat(name); err != nil || st.Mode().IsRegular() {
		_, claimed, err := claim(name)
		if err != nil {
			return nil, err
		}
		p.claims = append(p.claims, claimed)
	}
	f, err := os.Create(name)
	if err == nil {
		p.open = append(p.open, f)
	}
	return f, err
}

// during runs f under the profiles that were asked for. They are written also when f fails.
func (p *profiles) during(f func() error) (err error) {
	defer func() {
		for _, file := range p.open {
			err = errors.Join(err, file.Close())
		}
		for _, c := range p.claims {
			unclaim(c)
		}
	}()
	if p.cpu != "" {
		file, err := p.create(p.cpu)
		if err != nil {
			return err
		}
		if err := pprof.StartCPUProfile(file); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	if p.trace != "" {
		file, err := p.create(p.trace)
		if err != nil {
			return err
		}
		if err := trace.Start(file); err != nil {
			return err
		}
		defer trace.Stop()
	}
	if p.mem != "" {
		file, err := p.create(p.mem)
		if err != nil {
			return err
		}
		defer func() {
			runtime.GC() // the profile is of what was live at the last collection
			err = errors.Join(err, pprof.Lookup("allocs").WriteTo(file, 0))
		}()
	}
	return f()
}

// cutShort completes the profiles of a command that is not waited for: what takes too long is what one wants to see. The heap's is lost.
func cutShort() {
	pprof.StopCPUProfile()
	trace.Stop()
}
