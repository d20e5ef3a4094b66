// Generate writes the Go code of the protocols, without any program that is not a Go module.
//
// It compiles the files in proto/ and gives them to protoc-gen-go and protoc-gen-go-grpc.
// Run it with `go generate` in clients/go. With -check it writes nothing, and fails if a
// file differs from what it would write.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/protoutil"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

var protocols = []string{
	"cuzk/v1/proving_engine.proto",
	"cuzk/operator/v1/operator.proto",
}

var plugins = []string{"protoc-gen-go", "protoc-gen-go-grpc"}

const module = "github.com/cuzk/cuzk/clients/go"

func main() {
	protocolFolder := flag.String("proto", "../../../../proto", "the folder of the protocols")
	out := flag.String("out", "../..", "the folder of the module")
	isCheck := flag.Bool("check", false, "compare instead of write")
	flag.Parse()
	if err := run(*protocolFolder, *out, *isCheck); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run(protocolFolder, out string, isCheck bool) error {
	descriptors, err := compile(protocolFolder)
	if err != nil {
		return err
	}
	for _, plugin := range plugins {
		files, err := generate(plugin, descriptors)
		if err != nil {
			return fmt.Errorf("%s: %w", plugin, err)
		}
		for _, file := range files {
			path := filepath.Join(out, filepath.FromSlash(file.GetName()))
			if err := put(path, []byte(file.GetContent()), isCheck); err != nil {
				return err
			}
		}
	}
	return nil
}

// compile reads the protocols with their comments, which become those of the Go code.
func compile(folder string) ([]*descriptorpb.FileDescriptorProto, error) {
	compiler := protocompile.Compiler{
		Resolver:       &protocompile.SourceResolver{ImportPaths: []string{folder}},
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	files, err := compiler.Compile(context.Background(), protocols...)
	if err != nil {
		return nil, err
	}
	var descriptors []*descriptorpb.FileDescriptorProto
	for _, file := range files {
		descriptors = append(descriptors, protoutil.ProtoFromFileDescriptor(file))
	}
	return descriptors, nil
}

func generate(
	plugin string,
	descriptors []*descriptorpb.FileDescriptorProto,
) ([]*pluginpb.CodeGeneratorResponse_File, error) {
	request, err := proto.Marshal(&pluginpb.CodeGeneratorRequest{
		FileToGenerate: protocols,
		Parameter:      proto.String("module=" + module),
		ProtoFile:      descriptors,
	})
	if err != nil {
		return nil, err
	}
	command := exec.Command("go", "tool", plugin)
	command.Stdin = bytes.NewReader(request)
	command.Stderr = os.Stderr
	output, err := command.Output()
	if err != nil {
		return nil, err
	}
	response := new(pluginpb.CodeGeneratorResponse)
	if err := proto.Unmarshal(output, response); err != nil {
		return nil, err
	}
	if response.Error != nil {
		return nil, fmt.Errorf("%s", response.GetError())
	}
	return response.File, nil
}

func put(path string, content []byte, isCheck bool) error {
	if !isCheck {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		return os.WriteFile(path, content, 0o644)
	}
	present, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if !bytes.Equal(present, content) {
		return fmt.Errorf("%s is not current; run `go generate` in clients/go", path)
	}
	return nil
}
