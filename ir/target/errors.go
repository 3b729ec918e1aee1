package target

import (
	"errors"
	"fmt"
)

// Class says whose move it is when something fails. The command line turns it into an exit code.
type Class uint8

const (
	// User is wrong input: the message says where and what to change.
	User Class = iota + 1
	// Unsupported is right input that rosmar does not take; the message names the operator, type or form.
	Unsupported
	// Limit is a program that does not fit the machine or a stated bound; the message gives need and limit.
	Limit
	// Bug is a broken invariant inside rosmar.
	Bug
)

// String is the word that messages use for the class.
func (c Class) String() string {
	switch c {
	case User:
		return "error"
	case Unsupported:
		return "unsupported"
	case Limit:
		return "limit"
	case Bug:
		return "internal error"
	}
	return "error"
}

// Error is an error with a class. Subject is what UNSUPPORTED lines print: the operator or type, when there is one.
type Error struct {
	Class   Class
	Subject string
	Err     error
}

// Error is the message alone: the class is for the caller's eyes.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap gives the wrapped error to errors.Is and errors.As.
func (e *Error) Unwrap() error { return e.Err }

// Errorf builds an error of a class. %w works as in fmt.Errorf.
func Errorf(c Class, format string, args ...any) error {
	return &Error{Class: c, Err: fmt.Errorf(format, args...)}
}

// NotSupported is an Unsupported error about one subject, an operator or type by its name in the model.
func NotSupported(subject, format string, args ...any) error {
	return &Error{Class: Unsupported, Subject: subject, Err: fmt.Errorf(format, args...)}
}

// ClassOf finds the class of an error, and User for an error that has none (an unreadable file, for instance).
func ClassOf(err error) Class {
	var e *Error
	if errors.As(err, &e) {
		return e.Class
	}
	return User
}
