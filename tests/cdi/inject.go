// Gives devices of CDI specifications to a container, as podman and containerd do it: by their own library, as Debian packages it.
// Each specification is first compared with the schema that the project publishes.
//
//	inject CONFIG.JSON DIRECTORY DEVICE...
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/container-orchestrated-devices/container-device-interface/pkg/cdi"
	"github.com/container-orchestrated-devices/container-device-interface/pkg/cdi/validate"
	"github.com/container-orchestrated-devices/container-device-interface/schema"
	oci "github.com/opencontainers/runtime-spec/specs-go"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "inject:", err)
		os.Exit(1)
	}
}

func main() {
	var config oci.Spec

	text, err := os.ReadFile(os.Args[1])
	check(err)
	check(json.Unmarshal(text, &config))
	cdi.SetSpecValidator(validate.WithNamedSchema(schema.BuiltinSchemaName))
	cache, err := cdi.NewCache(cdi.WithSpecDirs(os.Args[2]), cdi.WithAutoRefresh(false))
	check(err)
	for path, errors := range cache.GetErrors() {
		fmt.Fprintln(os.Stderr, "inject:", path, errors)
		os.Exit(1)
	}
	_, err = cache.InjectDevices(&config, os.Args[3:]...)
	check(err)
	text, err = json.MarshalIndent(&config, "", "  ")
	check(err)
	check(os.WriteFile(os.Args[1], text, 0o644))
}
