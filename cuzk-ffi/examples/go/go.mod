module github.com/cuzk/cuzk/cuzk-ffi/examples/go

go 1.25.0
