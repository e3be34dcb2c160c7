//! Reads and compiles many rules in steps, so that packets pass in between.

use alloc::string::String;
use alloc::vec::Vec;

use classify::{Layout, PatternError, Program, Rule, RuleDiagnostic, Steps, Unreachable, free_in_steps};
use element::arguments::Raw;
use element::{FromArgument, Message, Setup, SetupError, text};

use super::split::{budget, report, report_patterns, warn_of_unused_outputs};

/// Rules that are read in a step. Each takes some microseconds.
const RULES_A_STEP: usize = 4;

/// Bytes in which the rules are counted in a step.
const BYTES_A_STEP: usize = 1 << 14;

/// What the rules of a class are.
pub(super) struct Language {
    pub(super) layout: Layout,
    /// Whether each output has a rule of its own. Warnings name outputs that get no packet.
    pub(super) is_classifier: bool,
    /// Whether it has the handlers `pattern0`, `pattern1` and so on. The texts of the rules are kept for them.
    pub(super) has_patterns: bool,
    /// Reads a rule: its number, its text, the names that it may use. Adds problems to the list.
    pub(super) read: fn(usize, &str, &Setup, &mut Problems) -> Option<Rule>,
}

/// The problems of rules.
#[derive(Default)]
pub(super) struct Problems {
    pub(super) of_rules: Vec<RuleDiagnostic>,
    pub(super) of_patterns: Vec<PatternError>,
}

/// Where the texts of the new rules are.
pub(super) enum Source {
    /// They are the arguments in a configuration.
    Configuration,
    /// They are the present ones, but for the one of this output.
    Present(usize, Raw),
}

/// New rules that are being read and compiled.
pub(super) struct RuleUpdate {
    source: Source,
    /// Bytes of the configuration, or rules, that have been read.
    read: usize,
    /// The argument MEMORY.
    memory: Option<u32>,
    rules: Vec<Rule>,
    problems: Problems,
    /// The texts of the rules, by number. Those that are not needed any more are empty.
    texts: Vec<Raw>,
    stage: Stage,
}

enum Stage {
    /// The rules, as far as they are counted.
    Counting(usize),
    Reading,
    Compiling(Steps<(Program, Vec<(usize, Unreachable)>)>),
}

/// Compiled rules.
pub(super) struct NewRules {
    pub(super) program: Program,
    /// The texts of the rules, where they are kept.
    pub(super) texts: Vec<Raw>,
    pub(super) memory: Option<u32>,
}

impl RuleUpdate {
    /// An update to the rules of a configuration.
    pub(super) fn new() -> RuleUpdate {
        let stage = Stage::Counting(1);
        RuleUpdate { stage, ..RuleUpdate::from_source(Source::Configuration, 0, None) }
    }

    /// An update that replaces one of `count` rules.
    pub(super) fn of_one(output: usize, text: &str, count: usize, memory: Option<u32>) -> RuleUpdate {
        RuleUpdate::from_source(Source::Present(output, Raw(text.into())), count, memory)
    }

    fn from_source(source: Source, count: usize, memory: Option<u32>) -> RuleUpdate {
        // Lists that grow are moved, which takes long. Memory is used only when it is touched.
        let (rules, texts) = (Vec::with_capacity(count), Vec::with_capacity(count));
        let problems = Problems::default();
        RuleUpdate { source, read: 0, memory, rules, problems, texts, stage: Stage::Reading }
    }

    /// Whether it reads the present rules, so that it must begin again when they change; and the output that it changes.
    pub(super) fn changed_output(&self) -> Option<usize> {
        if let Source::Present(output, _) = &self.source { Some(*output) } else { None }
    }

    /// Begins again, with other present rules.
    pub(super) fn restart(&mut self, memory: Option<u32>) {
        let none = Source::Configuration;
        let source = core::mem::replace(&mut self.source, none);
        *self = RuleUpdate::from_source(source, self.texts.capacity(), memory);
    }

    /// Performs a step. Returns the rules when they are compiled.
    pub(super) fn step(
        &mut self,
        language: &Language,
        (configuration, present): (&str, &[Raw]),
        setup: &mut Setup,
    ) -> Option<Result<NewRules, SetupError>> {
        match &mut self.stage {
            Stage::Counting(count) => {
                let rest = configuration.as_bytes().get(self.read..).unwrap_or_default();
                let part = rest.get(..BYTES_A_STEP).unwrap_or(rest);
                *count += part.iter().filter(|byte| **byte == b',').count();
                self.read += part.len();
                if part.len() == rest.len() {
                    *self = RuleUpdate::from_source(Source::Configuration, *count, None);
                }
                None
            }
            Stage::Reading => self.read_rules(language, (configuration, present), setup).err().map(Err),
            Stage::Compiling(steps) => {
                let (program, unreachable) = steps.step()?;
                if matches!(self.source, Source::Configuration) && language.is_classifier {
                    warn_of_unused_outputs(program.rules(), &unreachable, setup);
                }
                let texts = if language.has_patterns { core::mem::take(&mut self.texts) } else { Vec::new() };
                Some(Ok(NewRules { program, texts, memory: self.memory }))
            }
        }
    }

    /// Frees what it has read, in steps.
    pub(super) fn free(mut self) -> Vec<Steps<()>> {
        // A compilation that is not done is freed at once, and so are empty texts, which have no memory of their own.
        self.texts.retain(|text| !text.0.is_empty());
        let (rules, texts) = (self.rules, self.texts);
        let long = (!rules.is_empty()).then(|| free_in_steps(rules)).into_iter();
        long.chain((!texts.is_empty()).then(|| free_in_steps(texts))).collect()
    }

    /// Reads some rules; after the last one, begins to compile them.
    fn read_rules(
        &mut self,
        language: &Language,
        (configuration, present): (&str, &[Raw]),
        setup: &mut Setup,
    ) -> Result<(), SetupError> {
        for _ in 0..RULES_A_STEP {
            let Some(argument) = self.next_text(configuration, present) else {
                return self.begin_to_compile(language, setup);
            };
            let memory = argument.strip_prefix("MEMORY").filter(|value| value.starts_with(is_space));
            if let Some(memory) = memory.filter(|_| matches!(self.source, Source::Configuration)) {
                let memory = memory.trim();
                self.memory = Some(u32::from_argument(memory, setup).map_err(|problem| {
                    let (keyword, problem) = ("MEMORY".into(), alloc::format!("{problem}"));
                    Message::Argument { keyword, problem, value: Some(memory.into()) }
                })?);
                continue;
            }
            let before = self.problems.count();
            let rule =
                (language.read)(self.texts.len(), &text::unquote(&argument), setup, &mut self.problems);
            self.rules.extend(rule);
            let is_kept = language.has_patterns || self.problems.count() > before;
            self.texts.push(Raw(if is_kept { argument } else { String::new() }));
        }
        Ok(())
    }

    /// The text of the next rule.
    fn next_text(&mut self, configuration: &str, present: &[Raw]) -> Option<String> {
        match &self.source {
            Source::Configuration => {
                let mut rest = configuration.get(self.read..)?;
                let argument = text::next_argument(&mut rest);
                self.read = configuration.len() - rest.len();
                argument
            }
            Source::Present(output, new) => {
                let text = if self.read == *output { new } else { present.get(self.read)? };
                self.read += 1;
                Some(text.0.clone())
            }
        }
    }

    fn begin_to_compile(&mut self, language: &Language, setup: &mut Setup) -> Result<(), SetupError> {
        let (count, outputs) = (self.texts.len(), setup.outputs());
        if language.is_classifier && count != outputs {
            return Err(SetupError::ports(alloc::format!("need {outputs} arguments, one per output port")));
        }
        report(&self.problems.of_rules, &self.texts, setup)?;
        report_patterns(&self.problems.of_patterns, &self.texts)?;
        let rules = core::mem::take(&mut self.rules);
        let budget = budget(self.memory, setup);
        let steps = Program::in_steps(rules, language.layout, budget, language.is_classifier);
        self.stage = Stage::Compiling(steps);
        Ok(())
    }
}

impl Problems {
    fn count(&self) -> usize {
        self.of_rules.len() + self.of_patterns.len()
    }
}

fn is_space(character: char) -> bool {
    character.is_ascii_whitespace()
}
