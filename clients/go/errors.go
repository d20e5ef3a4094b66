package cuzk

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// InvalidInputError is a request that can never be proved. A repetition does not help.
type InvalidInputError struct {
	// Field is the field of the request that is wrong, if the daemon named one.
	Field string
	// Message says what is wrong and what to do.
	Message string
}

func (e *InvalidInputError) Error() string {
	if e.Field == "" {
		return "cuzk: invalid request: " + e.Message
	}
	return fmt.Sprintf("cuzk: invalid request: %s: %s", e.Field, e.Message)
}

// ProvingFailedError is a job that was accepted and could not be proved.
type ProvingFailedError struct {
	JobID string
	// Reason is the daemon's.
	Reason string
}

func (e *ProvingFailedError) Error() string {
	return fmt.Sprintf("cuzk: job %s failed: %s", e.JobID, e.Reason)
}

// CancelledError is a job that someone cancelled.
type CancelledError struct {
	JobID string
}

func (e *CancelledError) Error() string {
	return fmt.Sprintf("cuzk: job %s was cancelled", e.JobID)
}

// UnknownJobError is the name of a job that the daemon does not know. Its result may have
// been kept long enough. Submit the request again.
type UnknownJobError struct {
	JobID string
}

func (e *UnknownJobError) Error() string {
	return fmt.Sprintf("cuzk: the daemon knows no job %s; submit the request again", e.JobID)
}

// NotReadyError is a request that this daemon cannot prove as it is set up, for example
// because parameters are missing. The operator can mend it.
type NotReadyError struct {
	// Message is the daemon's. It says what is missing.
	Message string
}

func (e *NotReadyError) Error() string {
	return "cuzk: the daemon is not set up for the request: " + e.Message
}

// UnauthenticatedError is a call without the credentials that the daemon asks for.
type UnauthenticatedError struct {
	// Message is the daemon's.
	Message string
}

func (e *UnauthenticatedError) Error() string {
	return "cuzk: the daemon refuses the call: " + e.Message
}

// UnavailableError is a daemon that is not there, stops, or has no room. A later call may
// succeed.
type UnavailableError struct {
	Address string
	// Err is the last error of a call. It unwraps to the end of the context, too, if that
	// ended the repetitions.
	Err error
}

func (e *UnavailableError) Error() string {
	return fmt.Sprintf("cuzk: the daemon at %s is not available: %v", e.Address, e.Err)
}

func (e *UnavailableError) Unwrap() error { return e.Err }

// typed returns the error of a call as one of the types of this package. An error that is
// none of them stays as it is.
func (c *Client) typed(err error) error {
	if err == nil {
		return nil
	}
	reply, isStatus := status.FromError(err)
	if !isStatus {
		return err
	}
	switch reply.Code() {
	case codes.InvalidArgument, codes.OutOfRange:
		return invalidInput(reply.Message())
	case codes.Unauthenticated, codes.PermissionDenied:
		return &UnauthenticatedError{Message: reply.Message()}
	case codes.FailedPrecondition:
		return &NotReadyError{Message: reply.Message()}
	case codes.Unavailable, codes.ResourceExhausted:
		return &UnavailableError{Address: c.address, Err: err}
	case codes.DeadlineExceeded:
		return errors.Join(context.DeadlineExceeded, err)
	case codes.Canceled:
		return errors.Join(context.Canceled, err)
	default:
		return err
	}
}

// invalidInput takes the field from the front of a message, as the daemon writes it:
// `field: problem; advice`.
func invalidInput(message string) error {
	field, rest, hasField := strings.Cut(message, ": ")
	if !hasField || strings.ContainsAny(field, " \t") {
		return &InvalidInputError{Message: message}
	}
	return &InvalidInputError{Field: field, Message: rest}
}
