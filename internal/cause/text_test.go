package cause

import "testing"

func TestCredentialsInALogAreNotTold(t *testing.T) {
	for rule, c := range map[string]struct{ line, want string }{
		"a token of Hugging Face":           {"401 for hf_abcdefghijKLMNOPqrst: denied", "401 for hf_***: denied"},
		"a key of NGC":                      {"bad key nvapi-abcdefghijkl-mnopqrst", "bad key nvapi-***"},
		"a header":                          {"sent Authorization: Bearer abc.def-ghi", "sent Authorization: Bearer ***"},
		"a password in a URL":               {"dial s3://me:hunter22@store:9000/x failed", "dial s3://me:***@store:9000/x failed"},
		"a variable":                        {"AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7 is wrong", "AWS_SECRET_ACCESS_KEY=*** is wrong"},
		"a value in JSON":                   {`{"password": "hunter22", "user": "me"}`, `{"password": "***", "user": "me"}`},
		"a token of a ServiceAccount":       {"refused eyJhbGciOiJSUzI1.eyJpc3MiOiJrdWJl.c2ln", "refused ***"},
		"a long value":                      {"api_key: 0123456789abcdef0 unknown", "api_key: *** unknown"},
		"a token that is only spoken of":    {"invalid token: expected a number", "invalid token: expected a number"},
		"tokens of models are no secret":    {"max_tokens=128 exceeds tokens: 64", "max_tokens=128 exceeds tokens: 64"},
		"what engines say of their failure": {"ValueError: tokenizer is missing", "ValueError: tokenizer is missing"},
	} {
		t.Run(rule, func(t *testing.T) {
			if got := LastLine("before\n" + c.line + "\n"); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
