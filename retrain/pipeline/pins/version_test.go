package pins

import "testing"

func TestVersionsThatAreAllowed(t *testing.T) {
	for wanted, ok := range map[string]bool{
		"": true, ">=1.2": true, ">=1.3": false, "<2": true, "<1.2": false, ">1.2.2": false, "<=1.2": false, "<=1.2.2": true, "==1.2.2": true, "==1.2": false, ">=1.0,": true, "!=1.2.*": false, ">3||~=1.2": true, ">=1.2.2rc1": true, "!=1.2.2": false, "!=1.1": true, "~=1.2": true, "~=1.1.0": false,
		"^1.0": true, "^0.9": false, "~1.2.0": true, "~1.1": false, "==1.2.*": true, "==1.*": true, "==1.1.*": false, ">=1.0a2,<2.0": true, ">=1,<1.1": false, "nonsense": false,
	} {
		if got := Allowed(wanted, "1.2.2"); got != ok {
			t.Errorf("%q allows 1.2.2: %v", wanted, got)
		}
	}
	for wanted, want := range map[string]string{">=1.0.0a2": "1.0.0a2", "<2,>=1.5": "1.5", "^0.3.1": "0.3.1", "<3": "", "": "", "1.2": "1.2"} {
		if got := Lowest(wanted); got != want {
			t.Errorf("the lowest version of %q is %q, want %q", wanted, got, want)
		}
	}
}

func TestCompare(t *testing.T) {
	for _, v := range [][3]string{{"1.0", "1", "="}, {"1.2", "1.10", "<"}, {"2.0.0a2", "2.0", "<"}, {"2.0.post1", "2.0", ">"}, {"1.15.0+cu118", "1.15.0", "="}, {"0.8.7.post1", "0.8.8", "<"}, {"", "1", "<"}} {
		if got := "<=>"[Compare(v[0], v[1])+1 : Compare(v[0], v[1])+2]; got != v[2] {
			t.Errorf("%s %s %s, want %s", v[0], got, v[1], v[2])
		}
	}
}

func TestMarkers(t *testing.T) {
	for marker, want := range map[string]bool{
		"": true, "python_version < '3.9'": false, "python_version>=\"3.9\"": true, "'3.9' <= python_version": true, "'3.9' > python_version": false,
		"sys_platform == 'win32'": false, "sys_platform != \"win32\"": true, "platform_system == 'Darwin' or sys_platform == 'linux'": true,
		"python_version < '3.9' and sys_platform == 'linux'": false, "(python_version < '3.9' or os_name == 'posix') and platform_machine != 'arm64'": true,
		"extra == 'dev'": false, "extra != 'dev'": true, "python_version in '3.10 3.11'": true, "python_version not in '3.10, 3.11'": false, "sys_platform in 'linux linux2'": true,
		"python_full_version < '3.11.2'": false, "platform_python_implementation == 'CPython'": true, "implementation_name == 'pypy'": false,
		"python_version ~= '3.8'": true, "what is this": true, "(((": true, "python_version ==": true, "python_version == '3.11.*'": true,
	} {
		if got := Applies(marker, "3.11"); got != want {
			t.Errorf("%q is %v, want %v", marker, got, want)
		}
	}
	for wanted, want := range map[string]bool{">=3.8,<3.11": false, "^3.8": true, "~3.10": false, "3.11": true, "*": true} {
		if got := Applies(Within("python_version", wanted), "3.11"); got != want {
			t.Errorf("%q is %v, want %v", wanted, got, want)
		}
	}
}

func FuzzMarkers(f *testing.F) {
	f.Add("python_version < '3.9' and (extra == 'a' or os_name not in \"nt\")", ">=1,<2||~=3.1.*,^0,!=a")
	f.Fuzz(func(t *testing.T, marker, wanted string) {
		Applies(marker, "3.11")
		if v := Exact(wanted); v != "" && !Allowed("=="+v, v) {
			t.Errorf("%q is not the version that it names", wanted)
		}
		Allowed(wanted, "1.2.3")
		Compare(marker, wanted)
		Lowest(wanted)
	})
}
