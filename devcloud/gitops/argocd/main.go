// Argocd is Argo CD's application controller and its repository server, and the Redis that both keep their caches in:
// an in-memory one (miniredis), since what it holds may be lost at any time.
package main

import (
	"fmt"
	"os"

	"github.com/alicebob/miniredis/v2"
	controller "github.com/argoproj/argo-cd/v3/cmd/argocd-application-controller/commands"
	reposerver "github.com/argoproj/argo-cd/v3/cmd/argocd-repo-server/commands"
	"github.com/spf13/cobra"
)

func main() {
	root := &cobra.Command{Use: "argocd"}
	root.AddCommand(controller.NewCommand(), reposerver.NewCommand(), redis())
	if err := root.Execute(); err != nil {
		os.Exit(1)
	}
}

func redis() *cobra.Command {
	return &cobra.Command{
		Use:   "redis ADDRESS",
		Short: "Serve an in-memory Redis until killed",
		Args:  cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, arguments []string) error {
			server := miniredis.NewMiniRedis()
			if err := server.StartAddr(arguments[0]); err != nil {
				return fmt.Errorf("redis: %w", err)
			}
			<-command.Context().Done()
			return nil
		},
	}
}
