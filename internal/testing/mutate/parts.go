package main

func parts() []*part {
	const spec = "specs/corpus-integration"
	plan := []string{"specs/helpers_test.go"}
	for _, name := range []string{"layout", "shipped", "hardening", "decisions", "prompts", "answers"} {
		plan = append(plan, "specs/"+name+"_test.go")
	}
	return []*part{
		{name: "spec", folder: spec, files: []string{"spec.cue"}, find: cueMutants, ready: copied,
			tests: append(plan, "specs/edits_test.go")},
		{name: "templates", folder: spec, files: []string{"templates/*.md"}, find: textMutants, ready: copied, tests: plan},
		{name: "gates", folder: spec, files: []string{"gates/*.js"}, find: scriptMutants, ready: copied,
			tests: []string{"specs/helpers_test.go", "specs/gates_bounds_test.go"}},
		{name: "machine", folder: "dag/machine", files: []string{"*.go"}, find: goMutants, ready: overlaid,
			tests: []string{"dag/machine/*_test.go", "dag/machine/testdata/*/*.*", "dag/report/*_test.go",
				"dag/runlog/*_test.go", "internal/testing/dagtest/*.go"}},
	}
}
