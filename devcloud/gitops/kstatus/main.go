// Kstatus reads objects, one JSON document each, and prints what Flux's kstatus makes of each: a JSON line with its
// status and its message. Flux's controllers call the same function (github.com/fluxcd/cli-utils).
package main

import (
	"encoding/json"
	"errors"
	"io"
	"log"
	"os"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

type judgement struct {
	Status  string `json:"status"`
	Message string `json:"message"`
}

func main() {
	objects, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var object unstructured.Unstructured
		if err := objects.Decode(&object.Object); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			log.Fatalf("kstatus: standard input: %v", err)
		}
		// kstatus expects whole numbers as int64, as client-go's decoder makes them.
		text, err := json.Marshal(object.Object)
		if err != nil {
			log.Fatalf("kstatus: %v", err)
		}
		if err := object.UnmarshalJSON(text); err != nil {
			log.Fatalf("kstatus: %v", err)
		}
		result, err := status.Compute(&object)
		if err != nil {
			log.Fatalf("kstatus: %s %s: %v", object.GetKind(), object.GetName(), err)
		}
		if err := out.Encode(judgement{string(result.Status), result.Message}); err != nil {
			log.Fatalf("kstatus: standard output: %v", err)
		}
	}
}
