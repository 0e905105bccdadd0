// Package traits describes what the names of programs suggest, and what their code does, as far as the source shows.
package traits

import (
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
)

// The words in names of programs, with their weights.
var (
	// Training are the words that suggest or rule out that a program trains.
	Training = []weighed{
		{pattern.MustCompile(`^train$`), 80},
		{pattern.MustCompile(`^train`), 60},
		{pattern.MustCompile(`^train[_-].*(agent|policy|network|model)s?$`), 100}, // less the weight of such names below
		{pattern.MustCompile(`train`), 45},
		{pattern.MustCompile(`^(learn|fit)\b|^learn`), 45},
		{pattern.MustCompile(`^(main|run|run_rl|start|launch|runner)$`), 20},
		{pattern.MustCompile(`\b(run|main)_|ppo|sac|dqn|td3|a2c|impala|ddpg|reinforce`), 20},
		{pattern.MustCompile(`smoke|selftest|self_test|^test|conftest|unittest`), -120},
		{pattern.MustCompile(`pre-?_?train|offline`), -50},
		{pattern.MustCompile(`eval|enjoy|play|push|record|plot|render|bench|visuali|\bvis|video|export|convert|collect|download|check|verify|analy|generate|[_-]gen[_-]|inspect|debug|profil|draw|show|viz|dashboard|webapp|\bgui\b|\bui\b|tutorial|report|split|load|validate|print|clean|deploy|serve|rollout|list|info`), -70},
		{pattern.MustCompile(`vae|autoencoder|encoder|classifier|reward_?-?model|dynamics|tokenizer|softmax|world_?-?model|critic|detector|segment`), -45},
		{pattern.MustCompile(`sweep|tune|tuning|optuna|hyperparam|hpo|grid|parallel|distributed|multi|ray|worker|slurm|cluster|ablation|resume|finetune|fine-tune|-config$|_config$`), -25},
		{pattern.MustCompile(`bc|dagger|gail|airl|imitat|behavio|adversarial|preference|dataset`), -20},
		{pattern.MustCompile(`(trainer|learner|evaluator|worker|buffer|agent|policy|network|model)s?$`), -40},
		{pattern.MustCompile(`(utils?|helpers?|wrappers?)$|^(config|envs?)$`), -40},
	}
	// Evaluation are the words that suggest or rule out that a program evaluates.
	Evaluation = []weighed{
		{pattern.MustCompile(`^eval(uate|uation)?$`), 80},
		{pattern.MustCompile(`eval|(^|[_-])(ope|fqe)([_-]|$)`), 60}, // also offline evaluation of a policy
		{pattern.MustCompile(`^(enjoy|benchmark|test|play|rollout|watch|infer|inference|predict)$`), 55},
		{pattern.MustCompile(`enjoy|benchmark|back_?-?test|^test|_test$|play|rollout|infer|simulate|^run_?-?(policy|agent|model|trained)|^(load|watch|show|visuali[sz]e|render)`), 40},
		{pattern.MustCompile(`train`), -60},
		{pattern.MustCompile(`smoke|selftest|plot|record|export|convert|collect|download|check|verify|analy|generate|[_-]gen[_-]|split|serve|push|replay`), -60},
		{pattern.MustCompile(`vae|autoencoder|encoder|classifier|reward_?-?model|dynamics|softmax|world_?-?model|critic|random|human|manual|keyboard|expert`), -45},
		{pattern.MustCompile(`(evaluator|worker|buffer|network)s?$`), -50},
		{pattern.MustCompile(`parallel|distributed|slurm|-config$|_config$`), -20},
	}
)

// Saving matches calls that write a file.
var Saving = pattern.MustCompile(`(?:\.save|_save|save_\w+|\.dump|save)\(`)

var (
	trains     = pattern.MustCompile(`\.learn\(|\.train\(\w*\)|\btrain\w*\(|_trainer\(|\brun_rl\(|Trainer\(|Learner\(|Runner\(|\.backward\(|\.fit\(|optimi[sz]er\.step\(|\.update\(`)
	descends   = pattern.MustCompile(`\.backward\(|\bvalue_and_grad\(|\bGradientTape\(|\boptimi[sz]er\.(?:step|update)\(`)
	evaluates  = pattern.MustCompile(`\.predict\(|\.act\(|evaluat\w*\(|select_action|get_action|\.step\(|enjoy\(|play\(|\.eval\(|rollout`)
	loads      = pattern.MustCompile(`\.load\(|load_\w+\(|\.restore\(|load_state_dict|from_checkpoint|checkpoint|model_path`)
	copies     = pattern.MustCompile(`\bload_state_dict\([\w.]+\.state_dict\(\)\)`) // from one network to another
	importsRL  = pattern.MustCompile(`(?m)^\s*(?:from|import)\s+(stable_baselines3?|sb3_contrib|ray\.rllib|ray|tianshou|torchrl|skrl|rl_games|rsl_rl|sample_factory|pfrl|elegantrl|cleanrl|tf_agents|acme|dopamine|garage|d3rlpy|pettingzoo|gymnasium|gym|torch|jax|tensorflow|flax)\b`)
	forWindows = pattern.MustCompile(`\bwin32\w*\b|\bwinreg\b|\bpywinauto\b|windll|msvcrt|\bPRIORITY_CLASS\b|_PRIORITY_CLASS\b|\.exe\b`)
	shows      = pattern.MustCompile(`\.render\(|\.imshow\(|plt\.(?:plot|show|figure|savefig)\(|\.play_\w+\(|\.play\(`)
	decides    = pattern.MustCompile(`\.predict\(|\.collect\([^)\n]*\bn_episode|\.act\(|evaluat\w*\(|(?:select|get|choose|sample|compute)_(?:single_)?actions?\(|\b(?:model|policy|agent|actor|net|network|q_net\w*|policy_net\w*)\(`)
	asks       = pattern.MustCompile(`pygame\.(?:KEYDOWN|K_\w|key\.get_pressed)|\bkeyboard\.(?:is_pressed|read\w*|on_press)|\bpynput\b|\bgetch\(|on_key_press|\butils\.play\b|\b(?:PyQt|PySide)[0-9]|\b(?:custom)?tkinter\b|\bstreamlit\b|\bgradio\b|\bkivy\b|\bfrom textual\b|\bcurses\.(?:wrapper|initscr)\(`)
	// onScreen matches code that opens a window whatever the arguments of the program are.
	onScreen = pattern.MustCompile(`["']headless["']\s*:\s*False\s*[,}]|\bFuncAnimation\(`)
)

// Facts are what code does, as far as its source shows.
type Facts struct{ Trains, Learns, Descends, Evaluates, Loads, Saves, Shows, Windows, RL, Decides, Asks, Screen bool }

// Known caches the facts of code.
type Known map[string]*Facts

// Of returns what code does.
func (k Known) Of(code string) *Facts {
	found := k[code]
	if found == nil {
		found = &Facts{
			Trains: trains.MatchString(code), Learns: strings.Contains(code, ".learn("), Descends: descends.MatchString(code), Evaluates: evaluates.MatchString(code), Loads: loads.MatchString(copies.ReplaceAllString(code, "")),
			Saves: Saving.MatchString(code), Shows: shows.MatchString(code), Windows: forWindows.MatchString(code), RL: importsRL.MatchString(code),
			Decides: decides.MatchString(code), Asks: asks.MatchString(code), Screen: onScreen.MatchString(code),
		}
		k[code] = found
	}
	return found
}

// Handles reports whether code uses a model.
func (x *Facts) Handles() bool { return x.Evaluates || x.Loads || x.Decides }

// weighed is a pattern for names with its weight.
type weighed struct {
	name   *pattern.Pattern
	weight int
}

// Weigh returns the weight of a program's names: the highest weight of a word, plus the sum of the negative weights of
// the worst name.
func Weigh(names []string, words []weighed) int {
	best, worst := 0, 0
	for _, name := range names {
		bad := 0
		for _, w := range words {
			if w.name.MatchString(name) {
				best = max(best, w.weight)
				bad += min(0, w.weight)
			}
		}
		worst = min(worst, bad)
	}
	return best + worst
}
