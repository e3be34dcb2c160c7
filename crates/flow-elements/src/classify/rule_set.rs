//! The rules of an element: their program, and the work on them that is done in steps between batches.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use classify::{Columns, Program, Steps, free_in_steps};
use element::arguments::Raw;
use element::{Context, HandlerError, LongWork, Setup, SetupError};

use super::update::{Language, NewRules, RuleUpdate};

/// Bytes of a configuration from which on it is applied in steps.
const MIN_LONG_CONFIGURATION: usize = 512;
/// Rules from which on they are compiled again, or freed, in steps.
const MIN_LONG_RULES: usize = 64;

/// The rules of an element.
pub(super) struct RuleSet {
    language: &'static Language,
    pub(super) program: Program,
    pub(super) columns: Columns,
    /// The texts of the rules, where they are kept.
    pub(super) texts: Vec<Raw>,
    /// The argument MEMORY.
    pub(super) memory: Option<u32>,
    work: Option<Box<Work>>,
}

/// Work that is done in steps.
#[derive(Default)]
struct Work {
    /// The configuration that is written; none if the element is being created, or a single rule is written.
    configuration: String,
    update: Option<RuleUpdate>,
    /// What is freed when the update is done.
    freeing: Vec<Steps<()>>,
    result: Option<Result<(), SetupError>>,
}

impl RuleSet {
    /// Rules that are compiled.
    pub(super) fn new(
        language: &'static Language,
        program: Program,
        texts: Vec<Raw>,
        memory: Option<u32>,
    ) -> RuleSet {
        RuleSet { language, program, columns: Columns::default(), texts, memory, work: None }
    }

    /// Begins to compile the rules of a new element, if they are so many that packets should not wait for them.
    pub(super) fn begin(language: &'static Language, configuration: &str) -> Option<RuleSet> {
        if configuration.len() < MIN_LONG_CONFIGURATION {
            return None;
        }
        let mut rules = RuleSet::new(language, Program::new(Vec::new(), language.layout), Vec::new(), None);
        rules.work = Some(Box::new(Work { update: Some(RuleUpdate::new()), ..Work::default() }));
        Some(rules)
    }

    /// Takes over rules that are written at once. An update that has begun goes on: the write that ends last decides.
    pub(super) fn replace(&mut self, new: RuleSet) {
        let mut work = self.work.take();
        if let Some(update) = work.as_mut().and_then(|work| work.update.as_mut())
            && update.changed_output().is_some()
        {
            update.restart(new.memory);
        }
        *self = RuleSet { work, ..new };
    }

    /// The configuration of a classifier, as its rules say.
    pub(super) fn configuration(&self) -> String {
        let length = self.texts.iter().map(|text| text.0.len() + 2).sum::<usize>();
        let mut configuration = String::with_capacity(length + 32);
        for text in &self.texts {
            configuration += if configuration.is_empty() { "" } else { ", " };
            configuration += &text.0;
        }
        if let Some(memory) = self.memory {
            configuration += &alloc::format!(", MEMORY {memory}");
        }
        configuration
    }

    /// The number of the rule that a handler writes, if it writes one.
    fn rule_of(&self, handler: &str) -> Option<usize> {
        let number = handler.strip_prefix("pattern").filter(|_| self.language.has_patterns)?;
        number.parse().ok().filter(|number| *number < self.texts.len())
    }

    /// Whether a handler writes all rules.
    fn writes_rules(&self, handler: &str) -> bool {
        handler == "config" || handler == "rules" && !self.language.is_classifier
    }

    /// Takes over rules that were compiled in steps, and begins to free the old ones.
    fn take_over(&mut self, new: NewRules) -> Vec<Steps<()>> {
        let program = core::mem::replace(&mut self.program, new.program);
        let texts = core::mem::replace(&mut self.texts, new.texts);
        self.memory = new.memory;
        Vec::from([program.free_in_steps(), free_in_steps(texts)])
    }

    /// Performs a step of the work. Returns its result when it is done. If it is a write, `cx` records the configuration.
    fn step(
        &mut self,
        configuration: Option<&str>,
        setup: &mut Setup,
        cx: Option<&Context>,
    ) -> Option<Result<(), SetupError>> {
        let mut work = self.work.take()?;
        if let Some(update) = &mut work.update {
            let texts = (configuration.unwrap_or(&work.configuration), &self.texts[..]);
            let result = update.step(self.language, texts, setup);
            if let Some(result) = result {
                let update = work.update.take();
                let is_one = update.as_ref().is_some_and(|update| update.changed_output().is_some());
                work.freeing.extend(update.into_iter().flat_map(RuleUpdate::free));
                work.result = Some(result.map(|new| {
                    work.freeing.extend(self.take_over(new));
                    if let Some(cx) = cx {
                        let written = core::mem::take(&mut work.configuration);
                        let written = if is_one { self.configuration() } else { written };
                        cx.record_owned_configuration(written);
                    }
                }));
            }
        }
        if work.update.is_none() && work.free() {
            return Some(work.result.unwrap_or(Ok(())));
        }
        self.work = Some(work);
        None
    }
}

impl Work {
    /// Performs a step of freeing. Returns whether all is free.
    fn free(&mut self) -> bool {
        while self.freeing.last_mut().is_some_and(|steps| steps.step().is_some()) {
            self.freeing.pop();
        }
        self.freeing.is_empty()
    }
}

impl LongWork for RuleSet {
    /// A write that comes meanwhile is executed at once.
    fn begin_write(&mut self, _: &mut Context, handler: &str, value: &mut String) -> bool {
        if self.work.is_some() {
            return false;
        }
        let (count, text) = (self.texts.len(), value.trim());
        let update = match self.rule_of(handler) {
            Some(rule) if count >= MIN_LONG_RULES || text.len() >= MIN_LONG_CONFIGURATION => {
                RuleUpdate::of_one(rule, text, count, self.memory)
            }
            None if self.writes_rules(handler) && value.len() >= MIN_LONG_CONFIGURATION => RuleUpdate::new(),
            _ => return false,
        };
        let configuration = core::mem::take(value);
        self.work = Some(Box::new(Work { configuration, update: Some(update), ..Work::default() }));
        true
    }

    fn continue_write(&mut self, cx: &mut Context) -> Option<Result<(), HandlerError>> {
        let name = cx.name();
        let mut setup = cx.setup(&name);
        let result = self.step(None, &mut setup, Some(cx));
        for warning in &setup.warnings {
            cx.log_between_packets(&alloc::format!("  warning: {warning}"));
        }
        result.map(|result| result.map_err(HandlerError::from))
    }

    fn continue_creation(
        &mut self,
        configuration: &str,
        setup: &mut Setup,
    ) -> Option<Result<(), SetupError>> {
        self.step(Some(configuration), setup, None)
    }

    fn begin_removal(&mut self) -> bool {
        if self.work.is_none() && self.program.rules().len() < MIN_LONG_RULES {
            return false;
        }
        let mut work = self.work.take().unwrap_or_default();
        work.freeing.extend(work.update.take().into_iter().flat_map(RuleUpdate::free));
        let (program, texts) = (Program::new(Vec::new(), self.language.layout), Vec::new());
        work.freeing.extend(self.take_over(NewRules { program, texts, memory: None }));
        self.work = Some(work);
        true
    }

    fn continue_removal(&mut self) -> bool {
        let Some(work) = &mut self.work else { return true };
        work.free()
    }
}
