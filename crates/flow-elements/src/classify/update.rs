//! Replaces many rules under traffic: they are read and compiled in steps between batches. The old rules decide until then.

use alloc::string::String;
use alloc::vec::Vec;

use classify::{Layout, Names, Program, Rule, RuleDiagnostic, Steps, free_in_steps};
use element::arguments::Raw;
use element::{Context, HandlerError, Setup, SetupError, text};

use super::names::ElementNames;
use super::split::{budget, report};

/// Bytes of a configuration from which on it is applied in steps.
const MIN_LONG_CONFIGURATION: usize = 512;
/// Rules that are read in a step. Each takes some microseconds.
const RULES_A_STEP: usize = 4;

/// Reads a rule: its number, its text, the number of outputs, names. Adds problems to the list.
pub(super) type ReadRule = fn(usize, &str, usize, &dyn Names, &mut Vec<RuleDiagnostic>) -> Option<Rule>;

/// A new configuration that is read and compiled in steps.
pub(super) struct RuleUpdate {
    configuration: String,
    /// Bytes of it that have been read.
    read: usize,
    /// The argument MEMORY.
    memory: Option<u32>,
    rules: Vec<Rule>,
    problems: Vec<RuleDiagnostic>,
    /// The texts of the rules with problems, by number; the others are empty.
    texts: Vec<Raw>,
    stage: Stage,
}

enum Stage {
    Reading,
    Compiling(Steps<Program>),
    /// The new program decides, and the old one is freed.
    Freeing(Steps<()>),
    /// The new rules are wrong, and are freed.
    Failing(Steps<()>, HandlerError),
}

impl RuleUpdate {
    /// The update to a configuration, which it takes, if it is so long that packets should not wait for it.
    pub(super) fn new(configuration: &mut String) -> Option<RuleUpdate> {
        if configuration.len() < MIN_LONG_CONFIGURATION {
            return None;
        }
        let configuration = core::mem::take(configuration);
        // Lists that grow are moved, which takes long. Memory is used only when it is touched.
        let rules = 1 + configuration.bytes().filter(|byte| *byte == b',').count();
        Some(RuleUpdate {
            configuration,
            read: 0,
            memory: None,
            rules: Vec::with_capacity(rules),
            problems: Vec::new(),
            texts: Vec::with_capacity(rules),
            stage: Stage::Reading,
        })
    }

    /// Performs a step. Replaces `program` when the new one is ready, and then returns the result when the old one is freed.
    pub(super) fn step(
        &mut self,
        cx: &mut Context,
        program: &mut Program,
        read_rule: ReadRule,
    ) -> Option<Result<(), HandlerError>> {
        match &mut self.stage {
            Stage::Reading => {
                if let Err(error) = self.read_rules(cx, read_rule) {
                    let rules = core::mem::take(&mut self.rules);
                    self.stage = Stage::Failing(free_in_steps(rules), error);
                }
                None
            }
            Stage::Compiling(steps) => {
                let old = core::mem::replace(program, steps.step()?);
                cx.record_owned_configuration(core::mem::take(&mut self.configuration));
                self.stage = Stage::Freeing(old.free_in_steps());
                None
            }
            Stage::Freeing(steps) => steps.step().map(Ok),
            Stage::Failing(steps, error) => steps.step().map(|()| Err(error.clone())),
        }
    }

    /// Reads some rules; after the last one, begins to compile them.
    fn read_rules(&mut self, cx: &Context, read_rule: ReadRule) -> Result<(), HandlerError> {
        let name = cx.name();
        let mut setup = cx.setup(&name);
        for _ in 0..RULES_A_STEP {
            let mut rest = self.configuration.get(self.read..).unwrap_or_default();
            if rest.is_empty() {
                return self.begin_to_compile(cx, &mut setup);
            }
            let argument = text::next_argument(&mut rest);
            self.read = self.configuration.len() - rest.len();
            let Some(argument) = argument else { continue };
            if let Some(memory) = argument.strip_prefix("MEMORY").filter(|value| value.starts_with(is_space))
            {
                self.memory = Some(cx.keyword("MEMORY", memory)?);
                continue;
            }
            let (number, problems) = (self.texts.len(), self.problems.len());
            let names = &ElementNames(&setup);
            let rule = text::unquote(&argument);
            self.rules.extend(read_rule(number, &rule, setup.outputs(), names, &mut self.problems));
            let has_problem = self.problems.len() > problems;
            self.texts.push(Raw(if has_problem { argument } else { String::new() }));
        }
        Ok(())
    }

    fn begin_to_compile(&mut self, cx: &Context, setup: &mut Setup) -> Result<(), HandlerError> {
        report(&self.problems, &self.texts, setup).map_err(|error: SetupError| HandlerError::from(error))?;
        for warning in &setup.warnings {
            cx.log(&alloc::format!("  warning: {warning}"));
        }
        let rules = core::mem::take(&mut self.rules);
        self.stage = Stage::Compiling(Program::in_steps(rules, Layout::Ip, budget(self.memory, setup)));
        Ok(())
    }
}

fn is_space(character: char) -> bool {
    character.is_ascii_whitespace()
}
