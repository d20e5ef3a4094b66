// Prove sends a request file to a cuzk daemon and writes the proof.
//
//	go run ./examples/prove -request ../../data/sector-2kib/porep.json -out porep.proof
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	cuzk "github.com/cuzk/cuzk/clients/go"
)

func main() {
	address := flag.String("address", defaultAddress(), "the daemon: unix:///PATH or HOST:PORT")
	request := flag.String("request", "", "the request, as JSON")
	out := flag.String("out", "", "the file for the proof")
	timeout := flag.Duration("timeout", 30*time.Minute, "the longest time to wait")
	flag.Parse()
	if *request == "" || *out == "" {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, *timeout)
	defer cancel()
	if err := prove(ctx, *address, *request, *out); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func defaultAddress() string {
	if address := os.Getenv("CUZK_ADDRESS"); address != "" {
		return address
	}
	return "127.0.0.1:9820"
}

func prove(ctx context.Context, address, path, out string) error {
	request, err := cuzk.ReadRequest(path)
	if err != nil {
		return err
	}
	client, err := cuzk.Dial(address)
	if err != nil {
		return err
	}
	defer client.Close()
	began := time.Now()
	slow := time.AfterFunc(5*time.Second, func() {
		fmt.Fprintf(os.Stderr, "waiting for the daemon at %s; if none runs, start it with `cuzk serve`\n", address)
	})
	defer slow.Stop()
	proof, err := client.Prove(ctx, request)
	if err != nil {
		return err
	}
	if err := os.WriteFile(out, proof.Bytes, 0o644); err != nil {
		return err
	}
	fmt.Printf("%s: %d bytes in %v (the daemon took %v)\n",
		out, len(proof.Bytes), time.Since(began).Round(time.Millisecond), proof.Total)
	return nil
}
