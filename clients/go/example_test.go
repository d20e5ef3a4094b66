package cuzk_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	cuzk "github.com/cuzk/cuzk/clients/go"
)

func Example() {
	client, err := cuzk.Dial("unix:///run/cuzk/cuzk.sock")
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	request, err := cuzk.ReadRequest("porep.json")
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Minute)
	defer cancel()
	proof, err := client.Prove(ctx, request)

	var invalid *cuzk.InvalidInputError
	var failed *cuzk.ProvingFailedError
	switch {
	case errors.As(err, &invalid):
		log.Fatalf("the request can never be proved: %s: %s", invalid.Field, invalid.Message)
	case errors.As(err, &failed):
		log.Fatalf("the daemon could not prove it: %s", failed.Reason)
	case err != nil:
		log.Fatal(err)
	}
	fmt.Println("proved in", proof.Total)
	if err := os.WriteFile("porep.proof", proof.Bytes, 0o644); err != nil {
		log.Fatal(err)
	}
}
