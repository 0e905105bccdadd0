package access

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
)

func TestRolesPermit(t *testing.T) {
	for right, roles := range map[Right][]Role{
		Read:       {Viewer, Operator, Approver, Admin},
		Act:        {Operator, Approver, Admin},
		Decide:     {Approver, Admin},
		Administer: {Admin},
		Send:       {Agents, Admin},
		Obey:       {Viewer, Operator, Approver, Admin, Agents},
		Report:     {Jobs, Admin},
		Follow:     {Viewer, Operator, Approver, Admin, Jobs},
	} {
		permitted := map[Role]bool{}
		for _, role := range roles {
			permitted[role] = true
		}
		for _, role := range append(Roles(), "", "owner") {
			if role.Permits(right) != permitted[role] {
				t.Errorf("%q has right %b: %v", role, right, role.Permits(right))
			}
		}
	}
	if !Agents.Permits(Read|Send) || Agents.Permits(Read|Report) || Admin.Permits(0) {
		t.Error("one of several rights is not enough, or none is")
	}
}

func TestWhoseTokenItIs(t *testing.T) {
	ann, all := strings.Repeat("a", MinToken), strings.Repeat("t", MinToken)
	file := testkit.WriteFile(t, " "+ann+"\n")
	hs := Holders{{Role: Admin, File: testkit.WriteFile(t, all)}, {Name: "ann", Role: Approver, File: file}}
	if err := hs.Check(); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]Holder{ann: hs[1], all: hs[0]} {
		if got, err := hs.Of(t.Context(), text); err != nil || got != want {
			t.Errorf("%q is of %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "a", ann + "a", ann[1:]} {
		if got, err := hs.Of(t.Context(), text); !errors.Is(err, ErrUnknown) {
			t.Errorf("%q is of %+v, %v", text, got, err)
		}
	}
	if !hs.Anyone(Decide|Report) || hs[1:].Anyone(Administer) {
		t.Error("Anyone does not know who may what")
	}

	if err := os.WriteFile(file, []byte(all), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := hs.Check(); !errors.Is(err, ErrFile) || !strings.Contains(err.Error(), "the same token") {
		t.Errorf("the same token twice: %v", err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if _, err := hs.Of(t.Context(), ann); !errors.Is(err, ErrFile) {
		t.Errorf("a token that may be in a file that is gone: %v", err)
	}
	if got, err := hs.Of(t.Context(), all); err != nil || got != hs[0] {
		t.Errorf("beside a file that is gone: %+v, %v", got, err)
	}
	hs[1].File = filepath.Join(t.TempDir(), "short")
	if err := os.WriteFile(hs[1].File, []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := hs.Check(); !errors.Is(err, ErrFile) || !strings.Contains(err.Error(), "5 characters") {
		t.Errorf("a short token: %v", err)
	}
}
