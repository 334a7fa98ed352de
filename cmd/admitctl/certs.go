package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/admitd/admit/internal/certs"
)

func (a *app) certsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "certs",
		Short: "Make the certificates of a cluster",
	}
	cmd.AddCommand(
		a.certsFor("init", "Make an authority, and certificates for nodes and clients",
			`Make an authority, and certificates for nodes and clients that it issued, as files of
--dir: ca.crt, ca.key, and NAME.crt and NAME.key for each. They are made here,
without a node.

HOSTs are the addresses under which clients reach a node; localhost comes on top.
A node needs ca.crt and its own two files. Who has ca.key can make itself a member:
keep it off the nodes.`,
			"admitctl certs init node-1=10.0.0.1 node-2=10.0.0.2,two.example.org --client ci", certs.Init),
		a.certsFor("issue", "Make certificates for more nodes and clients",
			`Make certificates for more nodes and clients, from the authority in --dir. To renew
one, move its files away first; nothing is overwritten.`,
			"admitctl certs issue node-4=10.0.0.4", certs.Issue),
	)
	return group(cmd)
}

// certsFor is a command that makes certificates for the subjects that its
// arguments name.
func (a *app) certsFor(verb, short, long, example string,
	make func(dir string, subjects []certs.Subject, now time.Time) ([]string, error),
) *cobra.Command {
	var dir string
	var clients []string
	cmd := &cobra.Command{
		Use:   verb + " [NODE[=HOST,...]...]",
		Short: short, Long: long, Example: "  " + example,
	}
	cmd.Flags().StringVar(&dir, "dir", "certs", "the `directory` of the files")
	cmd.Flags().StringSliceVar(&clients, "client", nil, "the `name` of a client, who calls the API; can be repeated")
	cmd.RunE = a.does(func(_ context.Context, _ *cobra.Command, args []string) error {
		subjects, err := certSubjects(args, clients)
		if err != nil {
			return err
		}
		written, err := make(dir, subjects, time.Now())
		for _, file := range written {
			fmt.Fprintln(a.stdout, file)
		}
		return err
	})
	return cmd
}

// certSubjects reads NODE=HOST,... and the names of clients.
func certSubjects(nodes, clients []string) ([]certs.Subject, error) {
	var subjects []certs.Subject
	for _, node := range nodes {
		name, hosts, given := strings.Cut(node, "=")
		s := certs.Subject{Name: name}
		if given {
			s.Hosts = strings.Split(hosts, ",")
		}
		subjects = append(subjects, s)
	}
	for _, name := range clients {
		subjects = append(subjects, certs.Subject{Name: name, Client: true})
	}
	if len(subjects) == 0 {
		return nil, &usageError{"expected a NODE or a --client to make a certificate for"}
	}
	for _, s := range subjects {
		if err := certs.CheckName(s.Name); err != nil {
			return nil, &usageError{err.Error()}
		}
	}
	return subjects, nil
}
