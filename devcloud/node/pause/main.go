// Pause holds a pod's namespaces: it waits until it is told to end. It is the one program of the image that Kubernetes calls the sandbox's.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGINT, syscall.SIGTERM)
	<-told
}
