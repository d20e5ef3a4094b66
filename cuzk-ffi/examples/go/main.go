// Prove proves a request: prove REQUEST PROOF writes the proof of the file REQUEST to PROOF.
// Parameters are in FIL_PROOFS_PARAMETER_CACHE.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: prove REQUEST PROOF")
		os.Exit(2)
	}
	if err := prove(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		var failure *Error
		if errors.As(err, &failure) && failure.IsBusy() {
			fmt.Fprintln(os.Stderr, "submit again when a job has ended")
		}
		os.Exit(1)
	}
}

func prove(requestFile, proofFile string) error {
	request, err := os.ReadFile(requestFile)
	if err != nil {
		return err
	}
	fmt.Println("cuzk", Version())
	// An engine of a network makes multiples of its parameters; a test does not.
	engine, err := NewEngine("[srs]\nmultiples = []\n")
	if err != nil {
		return err
	}
	defer engine.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	proof, err := engine.Prove(ctx, request, `{"priority": "high"}`)
	if err != nil {
		return err
	}
	status, err := engine.Status()
	if err != nil {
		return err
	}
	fmt.Println(status)
	return os.WriteFile(proofFile, proof, 0o644)
}
