// Package cuzk is the client of a cuzk proving daemon.
//
// A [Client] sends a request with its vanilla proof and waits for the Groth16 proof:
//
//	client, err := cuzk.Dial("unix:///run/cuzk/cuzk.sock")
//	request, err := cuzk.ReadRequest("porep.json")
//	proof, err := client.Prove(ctx, request)
//
// [Client.Prove] calls again if the daemon is not there, has no room, or goes away while it
// proves. The daemon knows a job by its request id together with its input, so a repeated
// call attaches to the job and nothing is proved twice.
//
// Errors have types, for [errors.As]: [InvalidInputError], [ProvingFailedError],
// [CancelledError], [UnknownJobError], [NotReadyError], [UnauthenticatedError] and
// [UnavailableError].
//
// The package cuzkv1 has the messages. The package operatorv1 has the calls for operators.
// The package cuzktest has a daemon for tests, which proves nothing.
package cuzk

//go:generate go -C internal/generate run .
