// Command groth16 times gnark's Groth16 prover on a circuit of the shape of a proof of replication.
//
// It is no test of gnark, and cuzk links none of it. The circuit has ROWS rows. BITS of them each say
// that a random value is a bit. In each of the others a full-size value is the square of the one
// before. The program prints "ready" once it has made the parameters. Then it makes a proof for each
// line of its input. It prints the seconds from the values to a proof that is verified.
//
//	groth16 ROWS BITS THREADS
package main

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/consensys/gnark-crypto/ecc"
	"github.com/consensys/gnark/backend/groth16"
	"github.com/consensys/gnark/frontend"
	"github.com/consensys/gnark/frontend/cs/r1cs"
	"github.com/consensys/gnark/logger"
)

// shape is a circuit of so many rows. For each of Bits, one row says that it is a bit.
type shape struct {
	Last  frontend.Variable `gnark:",public"`
	Bits  []frontend.Variable
	First frontend.Variable

	rows int
}

// Define adds the rows.
func (s *shape) Define(api frontend.API) error {
	for _, bit := range s.Bits {
		api.AssertIsBoolean(bit)
	}
	value := s.First
	for range s.rows - len(s.Bits) - 2 {
		value = api.Mul(value, value)
	}
	// Two rows bind the public input.
	api.AssertIsEqual(api.Mul(s.Last, s.Last), s.Last)
	return nil
}

// sizes reads the three numbers of the command line.
func sizes(arguments []string) (rows, bits, threads int, err error) {
	if len(arguments) != 3 {
		return 0, 0, 0, fmt.Errorf("usage: groth16 ROWS BITS THREADS")
	}
	var numbers [3]int
	for i, text := range arguments {
		number, err := strconv.Atoi(text)
		if err != nil || number < 1 || number > 1<<28 {
			return 0, 0, 0, fmt.Errorf("%q is no number of rows, bits or threads", text)
		}
		numbers[i] = number
	}
	rows, bits, threads = numbers[0], numbers[1], numbers[2]
	if rows < bits+3 {
		return 0, 0, 0, fmt.Errorf("there are at least three rows more than bits")
	}
	return rows, bits, threads, nil
}

// prover returns a call that makes and verifies a proof of the shape.
func prover(rows, bits int) (func() error, error) {
	field := ecc.BLS12_381.ScalarField()
	circuit, err := frontend.Compile(field, r1cs.NewBuilder, &shape{Bits: make([]frontend.Variable, bits), rows: rows})
	if err != nil {
		return nil, err
	}
	if made := circuit.GetNbConstraints(); made != rows {
		return nil, fmt.Errorf("the circuit has %d rows instead of %d", made, rows)
	}
	proving, verifying, err := groth16.Setup(circuit)
	if err != nil {
		return nil, err
	}
	assignment := &shape{Last: 1, Bits: make([]frontend.Variable, bits), First: 3}
	for i := range assignment.Bits {
		assignment.Bits[i] = rand.IntN(2)
	}
	return func() error {
		witness, err := frontend.NewWitness(assignment, field)
		if err != nil {
			return err
		}
		proof, err := groth16.Prove(circuit, proving, witness)
		if err != nil {
			return err
		}
		public, err := witness.Public()
		if err != nil {
			return err
		}
		return groth16.Verify(proof, verifying, public)
	}, nil
}

func run(arguments []string) error {
	rows, bits, threads, err := sizes(arguments)
	if err != nil {
		return err
	}
	logger.Disable()
	runtime.GOMAXPROCS(threads)
	prove, err := prover(rows, bits)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		debug.FreeOSMemory()
		started := time.Now()
		if err := prove(); err != nil {
			return err
		}
		fmt.Printf("%.6f\n", time.Since(started).Seconds())
	}
	return nil
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "groth16:", err)
		os.Exit(2)
	}
}
