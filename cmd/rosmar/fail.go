package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rosmar-compiler/rosmar/codegen"
	"github.com/rosmar-compiler/rosmar/ir/target"
)

// Exit codes. README and the root help list them.
const (
	exitFine        = 0
	exitUser        = 1 // wrong or unsupported input; numbers that differ
	exitUsage       = 2 // also the allocator's watchdog
	exitLimit       = 3
	exitBug         = 4
	exitInterrupted = 130
)

// usageError is a command line that says nothing we can do. cmd is the command whose help to read.
type usageError struct {
	error
	cmd string
}

func (e usageError) Unwrap() error { return e.error }

// told is a failure whose message is out already.
type told struct{ code int }

func (told) Error() string { return "" }

// flagError is what is wrong with a flag, without the name of the function that found it out.
func flagError(_ *cobra.Command, err error) error {
	var bad *pflag.InvalidValueError
	var number *strconv.NumError
	if !errors.As(err, &bad) || !errors.As(err, &number) {
		return err
	}
	why := "is not a number"
	switch kind := bad.GetFlag().Value.Type(); {
	case errors.Is(number, strconv.ErrRange):
		why = "is out of range"
	case strings.HasPrefix(kind, "uint"):
		why = "is not a whole number from 0 on"
	case strings.HasPrefix(kind, "int"):
		why = "is not a whole number"
	case kind == "bool":
		why = "is neither true nor false"
	}
	return fmt.Errorf("--%s: %q %s", bad.GetFlag().Name, bad.GetValue(), why)
}

// usagef is a usage error of a verb.
func usagef(verb, format string, args ...any) error {
	return usageError{fmt.Errorf(format, args...), "rosmar " + verb}
}

// usage makes the user errors of an option check usage errors; a form that is not supported stays what it is.
func usage(verb string, err error) error {
	if err != nil && target.ClassOf(err) == target.User {
		return usageError{err, "rosmar " + verb}
	}
	return err
}

// named puts the input's name in front of an error that does not say it yet. Usage errors and silent ones stay as they are.
func named(input string, err error) error {
	var t told
	var u usageError
	if err == nil || errors.As(err, &t) || errors.As(err, &u) {
		return err
	}
	if said := err.Error(); strings.HasPrefix(said, input+":") || input != "-" && strings.Contains(said, input) { // a dash is in many a message
		return err
	}
	return fmt.Errorf("%s: %w", input, err)
}

// exitCode maps an error to the code of the process.
func exitCode(err error) int {
	var t told
	var u usageError
	switch {
	case err == nil:
		return exitFine
	case errors.As(err, &t):
		return t.code
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	case errors.As(err, &u), codegen.TimedOut(err):
		return exitUsage
	}
	switch target.ClassOf(err) {
	case target.Limit:
		return exitLimit
	case target.Bug:
		return exitBug
	}
	return exitUser
}

// report prints an error once, with its class and what to try, and gives the exit code.
func (a *app) report(err error) int {
	code := exitCode(err)
	var t told
	if err == nil || errors.As(err, &t) {
		return code
	}
	var u usageError
	out := a.talk()
	msg := strings.TrimRight(err.Error(), "\n")
	switch {
	case code == exitInterrupted:
		fmt.Fprintf(out, "rosmar: interrupted; nothing was left half written\n")
	case errors.As(err, &u):
		fmt.Fprintf(out, "rosmar: usage: %s\ntry: %s --help\n", msg, u.cmd)
	case codegen.TimedOut(err):
		fmt.Fprintf(out, "rosmar: limit: %s\n", msg)
	case code == exitBug:
		fmt.Fprintf(out, "rosmar: %s: %s\n"+
			"This is a bug in rosmar, not in your input. Please report the command line, this message and the version (%s);\n"+
			"--enable-verifier names the first pass after which the program is wrong.\n", target.Bug, msg, codegen.Version())
	default:
		fmt.Fprintf(out, "rosmar: %s: %s\n", target.ClassOf(err), msg)
	}
	return code
}
