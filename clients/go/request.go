package cuzk

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/cuzk/cuzk/clients/go/cuzkv1"
)

// The name of a seal proof is `StackedDrg`, a size and a version. Its number is that of the
// size plus five times that of the version.
var (
	sealSizes    = []string{"2KiB", "8MiB", "512MiB", "32GiB", "64GiB"}
	sealVersions = []string{"V1", "V1_1", "V1_1_Feat_SyntheticPoRep", "V1_2_Feat_NonInteractivePoRep"}
)

// ReadRequest reads a request file; see [ParseRequest].
func ReadRequest(path string) (*cuzkv1.SubmitProofRequest, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	request, err := ParseRequest(content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return request, nil
}

// ParseRequest reads a request from JSON. It is an object whose keys are the fields of
// [cuzkv1.SubmitProofRequest], with bytes in standard base64. It may also be the output of
// the first commit phase (C1), or the object `{"SectorNum", "Phase1Out", "SectorSize"}`
// around one.
func ParseRequest(content []byte) (*cuzkv1.SubmitProofRequest, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(content, &members); err != nil {
		return nil, fmt.Errorf("not a JSON object: %w", err)
	}
	if _, isRequest := members["proof_kind"]; !isRequest {
		return parsePhase1(content, members)
	}
	// It is there to verify a proof of spacetime, and no field of the message.
	if _, hasSectors := members["public_sectors"]; hasSectors {
		delete(members, "public_sectors")
		var err error
		if content, err = json.Marshal(members); err != nil {
			return nil, err
		}
	}
	request := new(cuzkv1.SubmitProofRequest)
	if err := protojson.Unmarshal(content, request); err != nil {
		return nil, err
	}
	return request, nil
}

func parsePhase1(content []byte, members map[string]json.RawMessage) (*cuzkv1.SubmitProofRequest, error) {
	request := &cuzkv1.SubmitProofRequest{
		ProofKind:    cuzkv1.ProofKind_POREP_SEAL_COMMIT,
		VanillaProof: content,
	}
	output := members
	if _, isWrapper := members["Phase1Out"]; isWrapper {
		var wrapper struct {
			SectorNum  uint64
			Phase1Out  []byte
			SectorSize uint64
		}
		if err := json.Unmarshal(content, &wrapper); err != nil {
			return nil, fmt.Errorf("not the wrapper of a C1 output: %w", err)
		}
		request.SectorNumber, request.SectorSize = wrapper.SectorNum, wrapper.SectorSize
		output = nil
		if err := json.Unmarshal(wrapper.Phase1Out, &output); err != nil {
			return nil, fmt.Errorf("Phase1Out: %w", err)
		}
	} else if _, isOutput := members["replica_id"]; !isOutput {
		return nil, errors.New("proof_kind: missing, and the file is neither a C1 output nor its wrapper")
	}
	number, err := sealProof(output["registered_proof"])
	if err != nil {
		return nil, err
	}
	request.RegisteredProof = number
	request.RequestId = "porep-" + digest(content)
	return request, nil
}

func sealProof(value json.RawMessage) (uint64, error) {
	var name string
	if err := json.Unmarshal(value, &name); err != nil {
		return 0, errors.New("registered_proof: the C1 output does not name one")
	}
	for version := range sealVersions {
		for size := range sealSizes {
			if name == "StackedDrg"+sealSizes[size]+sealVersions[version] {
				return uint64(version*len(sealSizes) + size), nil
			}
		}
	}
	return 0, fmt.Errorf("registered_proof: no seal proof is called %q", name)
}

// digest returns a short name of the content: the same file is the same job.
func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:8])
}
