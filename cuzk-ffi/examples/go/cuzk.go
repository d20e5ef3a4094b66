package main

/*
#cgo LDFLAGS: -lcuzk_ffi
#include "cuzk.h"
*/
import "C"

import (
	"context"
	"fmt"
	"runtime"
	"time"
	"unsafe"
)

// An Error is a failure of the library. Code is the number of its CUZK code.
type Error struct {
	Code    int
	Message string
}

func (e *Error) Error() string { return e.Message }

// IsBusy returns true if the same request may be accepted when a job has ended.
func (e *Error) IsBusy() bool { return e.Code == C.CUZK_BUSY }

// call makes a call of the library and returns its code and its error. The last error is the
// thread's, so the goroutine stays on its thread until it has the message.
func call(work func() C.int32_t) (C.int32_t, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	code := work()
	if code == C.CUZK_OK || code == C.CUZK_PENDING {
		return code, nil
	}
	return code, &Error{int(code), C.GoString(C.cuzk_lend_error())}
}

// start returns the address of bytes for the length of a call.
func start(bytes []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(bytes)) }

// Version returns the version of the library.
func Version() string { return C.GoString(C.cuzk_lend_version()) }

// An Engine proves jobs on threads of its own. All goroutines may use it at once.
type Engine struct{ engine *C.cuzk_engine }

// NewEngine starts an engine with the text of a configuration.
func NewEngine(toml string) (*Engine, error) {
	e, text := &Engine{}, []byte(toml)
	_, err := call(func() C.int32_t {
		return C.cuzk_engine_new(start(text), C.size_t(len(text)), &e.engine)
	})
	if err != nil {
		return nil, err
	}
	return e, nil
}

// Status returns the state of the engine as JSON.
func (e *Engine) Status() (string, error) {
	var status *C.char
	_, err := call(func() C.int32_t { return C.cuzk_status_new(e.engine, &status) })
	defer C.cuzk_status_free(status)
	return C.GoString(status), err
}

// Close ends the engine. Jobs that it has not proved by then end with an error.
func (e *Engine) Close() {
	C.cuzk_engine_free(e.engine)
	e.engine = nil
}

// Prove submits a request, waits for its proof and returns it. If the context ends before, the
// job is cancelled.
func (e *Engine) Prove(ctx context.Context, request []byte, options string) ([]byte, error) {
	var job *C.cuzk_job
	text := []byte(options)
	_, err := call(func() C.int32_t {
		return C.cuzk_job_new(e.engine, start(request), C.size_t(len(request)),
			start(text), C.size_t(len(text)), &job)
	})
	if err != nil {
		return nil, err
	}
	defer C.cuzk_job_free(job)
	if err := await(ctx, job); err != nil {
		return nil, err
	}
	var proof *C.uint8_t
	var length C.size_t
	if _, err := call(func() C.int32_t {
		return C.cuzk_job_lend_proof(job, &proof, &length)
	}); err != nil {
		return nil, err
	}
	// The proof belongs to the job, so this is a copy.
	return C.GoBytes(unsafe.Pointer(proof), C.int(length)), nil
}

// Aggregate aggregates the proofs of a list of sectors, which is JSON. It blocks until the
// aggregate is there.
func (e *Engine) Aggregate(request []byte) ([]byte, error) {
	var aggregate *C.cuzk_aggregate
	if _, err := call(func() C.int32_t {
		return C.cuzk_aggregate_new(e.engine, start(request), C.size_t(len(request)), &aggregate)
	}); err != nil {
		return nil, err
	}
	defer C.cuzk_aggregate_free(aggregate)
	var bytes *C.uint8_t
	var length C.size_t
	if _, err := call(func() C.int32_t {
		return C.cuzk_aggregate_lend_bytes(aggregate, &bytes, &length)
	}); err != nil {
		return nil, err
	}
	// The bytes belong to the aggregate, so this is a copy.
	return C.GoBytes(unsafe.Pointer(bytes), C.int(length)), nil
}

// await waits for the end of a job, and looks at the context now and then.
func await(ctx context.Context, job *C.cuzk_job) error {
	const look = 100 * time.Millisecond
	for {
		code, err := call(func() C.int32_t {
			return C.cuzk_job_wait(job, C.uint64_t(look.Milliseconds()))
		})
		if code != C.CUZK_PENDING {
			return err
		}
		if ctx.Err() != nil {
			C.cuzk_job_cancel(job)
			return fmt.Errorf("the job was cancelled: %w", ctx.Err())
		}
	}
}
