package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// goFiles returns the contents of the Go files of the repository by path.
func goFiles(t *testing.T) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && strings.HasPrefix(d.Name(), ".") && d.Name() != ".." {
			return filepath.SkipDir
		}
		if strings.HasSuffix(path, ".go") {
			files[strings.TrimPrefix(path, "../../")], err = os.ReadFile(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// A package that exceeds the limits should be split.
func TestPackagesAreWithinBounds(t *testing.T) {
	const maxLines, maxFiles = 4500, 35
	lines, count := map[string]int{}, map[string]int{}
	for path, text := range goFiles(t) {
		if dir := filepath.Dir(path); !strings.HasSuffix(path, "_test.go") {
			lines[dir] += bytes.Count(text, []byte("\n"))
			count[dir]++
		}
	}
	if len(lines) < 20 {
		t.Fatalf("only %d packages", len(lines))
	}
	for dir := range lines {
		if lines[dir] > maxLines || count[dir] > maxFiles {
			t.Errorf("%s has %d lines in %d files; at most %d in %d", dir, lines[dir], count[dir], maxLines, maxFiles)
		}
	}
}

// The Makefile selects tests by their prefix: a test without it would never run, and one that has it by mistake would
// run at the wrong place.
func TestTestsOfRealServersAreNamedSo(t *testing.T) {
	test := regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T`)
	files := goFiles(t)
	for tag, prefix := range map[string]string{"e2e": "TestE2E", "kubernetes": "TestKubernetes"} {
		seen := 0
		for path, text := range files {
			for _, name := range test.FindAllSubmatch(text, -1) {
				named := strings.HasPrefix(string(name[1]), prefix)
				if named {
					seen++
				}
				if named != bytes.HasPrefix(text, []byte("//go:build "+tag+"\n")) {
					t.Errorf("%s: %s: tests in files tagged %s, and no others, begin with %s", path, name[1], tag, prefix)
				}
			}
		}
		if seen == 0 {
			t.Errorf("no test is tagged %s", tag)
		}
	}
}

// A comment on a large type says why it is large: a type with more fields or methods than the limits is otherwise
// assumed to be several types.
func TestLargeTypesSayWhy(t *testing.T) {
	const maxFields, maxMethods = 20, 30
	fields, methods, docs := map[string]int{}, map[string]int{}, map[string]string{}
	for path, text := range goFiles(t) {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		room := filepath.Dir(path) + "."
		for _, decl := range file.Decls {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				if decl.Recv != nil {
					methods[room+receiver(decl.Recv.List[0].Type)]++
				}
			case *ast.GenDecl:
				for _, spec := range decl.Specs {
					if spec, is := spec.(*ast.TypeSpec); is {
						fields[room+spec.Name.Name] = fieldsOf(spec.Type)
						docs[room+spec.Name.Name] = decl.Doc.Text() + spec.Doc.Text()
					}
				}
			}
		}
	}
	if len(docs) < 500 {
		t.Fatalf("only %d types", len(docs))
	}
	for name, doc := range docs {
		large := fields[name] > maxFields || methods[name] > maxMethods
		if says := strings.Contains(strings.ReplaceAll(doc, "\n", " "), "is large because"); large != says {
			t.Errorf("%s has %d fields and %d methods; its comment says why: %t", name, fields[name], methods[name], says)
		}
	}
}

// receiver returns the name of a receiver's type.
func receiver(of ast.Expr) string {
	switch of := of.(type) {
	case *ast.StarExpr:
		return receiver(of.X)
	case *ast.IndexExpr:
		return receiver(of.X)
	case *ast.IndexListExpr:
		return receiver(of.X)
	case *ast.Ident:
		return of.Name
	}
	return ""
}

// fieldsOf returns the number of fields of a struct; an embedded one counts as one.
func fieldsOf(of ast.Expr) (n int) {
	s, is := of.(*ast.StructType)
	if !is {
		return 0
	}
	for _, f := range s.Fields.List {
		n += max(1, len(f.Names))
	}
	return n
}
