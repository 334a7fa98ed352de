package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/admitd/admit/internal/tokens"
)

func (a *app) tokenCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Make the tokens with which callers prove who they are",
	}
	cmd.AddCommand(a.tokenNewCommand())
	return group(cmd)
}

func (a *app) tokenNewCommand() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "new NAME",
		Short: "Make a token",
		Long: `Make a token and print it: it is shown this once. What the nodes need to know it by,
its holder's name and its SHA-256, is added to a file for their tokens_file, made if
need be. A line that is taken out of the file ends its token when the node starts
anew.`,
		Example: "  admitctl token new mailer --file tokens",
		Args:    cobra.ExactArgs(1),
	}
	cmd.Flags().StringVar(&file, "file", "tokens", "the nodes' `file`")
	cmd.RunE = a.does(func(_ context.Context, _ *cobra.Command, args []string) error {
		if err := tokens.CheckName(args[0]); err != nil {
			return &usageError{err.Error()}
		}
		token := tokens.New()
		if err := appendLine(file, tokens.Line(args[0], token)); err != nil {
			return err
		}
		fmt.Fprintln(a.stdout, token)
		return nil
	})
	return cmd
}

func appendLine(file, line string) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("add the token: %w", err)
	}
	_, err = f.WriteString(line)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("add the token: %w", err)
	}
	return nil
}
