package pipeline

import (
	"fmt"
	"reflect"
	"strconv"

	"github.com/rewardwatch/rewardwatch/retrain/yamlfile"
)

// Text is a scalar of the file as text, with its path.
type Text struct {
	Path, Value string
}

// values are all values of a file by path.
type values struct {
	texts map[string]Text
	sizes map[string]int // lengths of lists
	trees map[string]yamlfile.Value

	places map[string]yamlfile.Place // places of values in trees
}

// valuesOf returns the values of a file.
func valuesOf(f *File) values {
	v := values{map[string]Text{}, map[string]int{}, map[string]yamlfile.Value{}, map[string]yamlfile.Place{}}
	v.add("", reflect.ValueOf(f).Elem())
	return v
}

func (v values) add(path string, x reflect.Value) {
	if tree, ok := x.Interface().(yamlfile.Value); ok {
		v.trees[path] = tree
		v.tree(path, tree)
		return
	}
	switch x.Kind() {
	case reflect.Struct:
		for _, f := range yamlfile.Fields(x) {
			v.add(yamlfile.Join(path, f.Key), f.Value)
		}
	case reflect.Slice:
		v.sizes[path] = x.Len()
		for i := range x.Len() {
			v.add(element(path, i), x.Index(i))
		}
	case reflect.Float64:
		v.texts[path] = Text{path, strconv.FormatFloat(x.Float(), 'g', -1, 64)}
	default:
		v.texts[path] = Text{path, fmt.Sprint(x.Interface())}
	}
}

// given reports whether a path has a value.
func (v values) given(path string) bool {
	return v.texts[path].Value != "" || v.sizes[path] > 0 || len(v.trees[path].Members) > 0
}

// tree adds all scalars of a tree.
func (v values) tree(path string, tree yamlfile.Value) {
	v.texts[path] = Text{path, tree.Scalar}
	v.places[path] = tree.Place
	for i, item := range tree.Items {
		v.tree(element(path, i), item)
	}
	for key, member := range tree.Members {
		v.tree(yamlfile.JoinAny(path, key), member)
	}
}

// element returns the path of an element of a list.
func element(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }

// text returns the value of a path. A Text is returned unchanged.
func (v values) text(x any) (Text, error) {
	switch x := x.(type) {
	case Text:
		return x, nil
	case string:
		if t, ok := v.texts[x]; ok {
			return t, nil
		}
		return Text{}, fmt.Errorf("the file does not contain the value %q", x)
	}
	return Text{}, fmt.Errorf("%T is neither a path nor a value", x)
}

// list returns the elements of a list of scalars.
func (v values) list(path string) ([]Text, error) {
	paths, err := v.each(path)
	if err != nil {
		return nil, err
	}
	out := make([]Text, len(paths))
	for i, p := range paths {
		if out[i], err = v.text(p); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// each returns the paths of the elements of a list.
func (v values) each(path string) ([]string, error) {
	n, ok := v.sizes[path]
	if !ok {
		return nil, fmt.Errorf("the file does not contain the list %q", path)
	}
	out := make([]string, n)
	for i := range out {
		out[i] = element(path, i)
	}
	return out, nil
}
