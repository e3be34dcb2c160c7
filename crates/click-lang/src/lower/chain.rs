//! Chains: declares, looks up and connects elements.

use super::level::Lowering;
use crate::class::{ClassId, ConfigText, Link, Part, PartKind, SourceSpan};
use crate::connect::{self, ConnectorSide};
use crate::steps::{pause, pause_every};
use crate::tree::{ClassUse, Connector, Item, Span, Step, Subject};
use crate::tunnel::LINKS_A_STEP;
use crate::{Diagnostic, Severity, lexer};
use alloc::borrow::Cow;
use alloc::format;
use alloc::rc::Rc;
use alloc::string::ToString;
use alloc::vec::Vec;

/// A partly resolved item of a chain: its groups and compounds are done, but its name is not yet looked up as an
/// element.
struct Resolved<'t> {
    item: &'t Item,
    /// The element's or class's name.
    name: Rc<str>,
    /// The class that the name means.
    class: Option<ClassId>,
    /// The class after `::`.
    declared: Option<ClassId>,
    config: ConfigText,
    /// A group's part index and port counts.
    group: Option<(usize, [usize; 2])>,
    span: SourceSpan,
}

/// The length from which on a similar name says that a name is misspelt.
const MIN_MISSPELT: usize = 3;

impl Lowering<'_, '_> {
    /// Lowers a chain that ends at `end`, by when `errors` syntax errors had been found; returns whether it ends at the
    /// `output` of the surrounding compound or group.
    pub(super) async fn chain(
        &mut self,
        steps: &[Step],
        mut ends_output: bool,
        end: Span,
        errors: usize,
    ) -> bool {
        let mut before: Option<Vec<ConnectorSide>> = None;
        for (index, step) in steps.iter().enumerate() {
            let next = steps.get(index + 1).and_then(|next| next.connector);
            if let ([Item { subject: Subject::Implicit, span, outputs: None, .. }, ..], Some(connector)) =
                (step.items.as_slice(), next)
                && index == 0
                && !ends_output
            {
                self.suggest_start(*span, connector);
            }
            let sides = self.step(step, index == 0, next.is_some()).await;
            if let (Some(before), Some(connector)) = (&before, step.connector) {
                self.connect(before, &sides, connector);
            } else if sides.iter().any(|side| !side.inputs.numbers.is_empty()) {
                let span = self.source_span(next.map_or(end, |connector| connector.span));
                self.compilation.error(span, "input ports ignored at start of chain");
            }
            before = Some(sides);
        }
        self.syntax_errors(errors);
        let Some(sides) = before else { return ends_output };
        if sides.iter().any(|side| !side.outputs.numbers.is_empty()) {
            self.compilation.error(self.source_span(end), "output ports ignored at end of chain");
        }
        let output = self.level().names.get("output").copied();
        ends_output = matches!(sides.as_slice(), [side] if Some(side.part) == output);
        ends_output
    }

    fn suggest_start(&mut self, span: Span, connector: Connector) {
        let arrow = if connector.double { "=>" } else { "->" };
        let location = self.compilation.location(self.source_span(span));
        let message = format!("suggest ‘input {arrow}’ or ‘[0] {arrow}’ to start connection");
        self.compilation.diagnostics.push(Diagnostic::new(Severity::Warning, location, message));
    }

    async fn step(&mut self, step: &Step, first: bool, connected: bool) -> Vec<ConnectorSide> {
        let mut resolved: Vec<Resolved<'_>> = Vec::with_capacity(step.items.len());
        for item in &step.items {
            resolved.push(self.item(item, first).await);
            pause().await;
        }
        self.syntax_errors(step.errors);
        if first && !connected {
            spread_declaration(&mut resolved).await;
        }
        let mut sides = Vec::with_capacity(resolved.len());
        for item in resolved {
            sides.push(self.side(item));
            pause().await;
        }
        sides
    }

    async fn item<'t>(&mut self, item: &'t Item, first: bool) -> Resolved<'t> {
        let span = self.source_span(item.span);
        let (mut class, mut group) = (None, None);
        let name: Rc<str> = match &item.subject {
            Subject::Name => {
                let name = self.slice(item.span);
                class = self.compilation.find_class(&name);
                name
            }
            Subject::Implicit => Rc::from(if first { "input" } else { "output" }),
            Subject::Compound(compound) => {
                let name: Rc<str> = Rc::from("");
                class = Some(self.compound(compound, &name).await);
                name
            }
            Subject::Group(statements) => {
                let name = self.anonymous_name("");
                group = Some(self.group(statements, name.clone(), span).await);
                name.into()
            }
        };
        let declared = match &item.class {
            Some(ClassUse::Named(span)) => Some(self.class_named(*span)),
            Some(ClassUse::Compound(compound)) => Some(self.compound(compound, &Rc::from("")).await),
            Some(ClassUse::Missing { errors, .. }) => Some(class.unwrap_or_else(|| {
                self.syntax_errors(*errors);
                self.class_named(item.span)
            })),
            None => None,
        };
        let config = item.config.map_or_else(ConfigText::default, |config| {
            if group.is_some() || self.level().names.contains_key(&name) {
                let span = self.source_span(item.span);
                self.compilation.error(span, "configuration string ignored on element reference");
            }
            let text = self.slice(config);
            let span = Some(self.source_span(config));
            match lexer::config_text(&text) {
                Cow::Borrowed(_) => ConfigText { text, span, is_verbatim: true },
                Cow::Owned(text) => ConfigText { text: text.into(), span, is_verbatim: false },
            }
        });
        Resolved { item, name, class, declared, config, group, span }
    }

    /// Finds or creates the element of an item.
    fn side(&mut self, resolved: Resolved<'_>) -> ConnectorSide {
        let Resolved { item, name, class, declared, config, group, span } = resolved;
        let mut side = ConnectorSide {
            part: 0,
            inputs: item.inputs.clone().unwrap_or_default(),
            outputs: item.outputs.clone().unwrap_or_default(),
        };
        if let Some((part, [inputs, outputs])) = group {
            side.part = part;
            // A group's ports are implied on both sides, unless explicit.
            if item.inputs.is_none() {
                side.inputs.numbers = (0..inputs as u32).collect();
            }
            if item.outputs.is_none() {
                side.outputs.numbers = (0..outputs as u32).collect();
            }
            if declared.is_some() {
                self.compilation.error(span, "a group can’t be declared as an element");
            }
            return side;
        }
        let known = if class.is_none() { self.level().names.get(&name).copied() } else { None };
        if let Some(part) = known {
            side.part = part;
            if declared.is_some() {
                self.redeclared(span, &name, part);
            }
            return side;
        }
        side.part = match (class, declared) {
            (Some(class), declared) => {
                if declared.is_some() {
                    self.compilation.error(span, format!("class ‘{name}’ used as element name"));
                }
                let name = self.anonymous_name(&name);
                self.add_part(name, PartKind::Element(class), config, span)
            }
            (None, Some(class)) => self.add_part(name.to_string(), PartKind::Element(class), config, span),
            (None, None) => {
                let level = &self.levels[self.levels.len() - 1];
                let message = format!("undeclared element ‘{name}’");
                let known = level.names.keys().map(|name| &**name);
                let nearest = self.compilation.unknown(span, message, &name, known);
                // The name of one or two letters is near to any other.
                let nearest = nearest.filter(|_| name.len() >= MIN_MISSPELT);
                let meant = nearest.and_then(|name| level.compound.parts.get(*level.names.get(name)?));
                self.compilation.probably_meant.extend(meant.map(|part| part.span));
                let class = self.unknown_class(name.clone());
                let name = self.anonymous_name(&name);
                self.add_part(name, PartKind::Element(class), config, span)
            }
        };
        side
    }

    fn redeclared(&mut self, span: SourceSpan, name: &str, part: usize) {
        let message = format!("redeclaration of element ‘{name}’");
        let Part { kind, span: other, .. } = *self.part(part);
        if matches!(kind, PartKind::Element(_)) {
            let related = format!("element ‘{name}’ previously declared here");
            self.compilation.error_and(span, message, other, related);
        } else {
            self.compilation.error(span, message);
        }
    }

    fn connect(&mut self, from: &[ConnectorSide], to: &[ConnectorSide], connector: Connector) {
        let span = self.source_span(connector.span);
        let limit = self.compilation.options.limits.connections;
        let room = limit.saturating_sub(self.level().compound.links.len());
        let made = connect::connect(from, to, connector.double, room);
        for message in made.errors {
            self.compilation.error(span, message);
        }
        let compound = &mut self.level().compound;
        for (from, to) in made.links {
            let outputs = &mut compound.parts[from.0].ports[1];
            *outputs = (*outputs).max(from.1 + 1);
            let inputs = &mut compound.parts[to.0].ports[0];
            *inputs = (*inputs).max(to.1 + 1);
            compound.links.push(Link { from, to, span });
        }
    }
}

/// `a, b, c :: Class(config)` declares all three: copies class and configuration of the last to the others.
async fn spread_declaration(items: &mut [Resolved<'_>]) {
    let bare = |item: &Resolved<'_>| {
        matches!(item.item.subject, Subject::Name) && item.item.class.is_none() && item.item.config.is_none()
    };
    let no_ports = |item: &Resolved<'_>| {
        item.item.inputs.is_none()
            && item.item.outputs.is_none()
            && !matches!(item.item.subject, Subject::Implicit)
    };
    let fits = items.iter().all(no_ports);
    if let Some((last, others)) = items.split_last_mut()
        && fits
        && others.iter().all(bare)
    {
        for (done, item) in others.iter_mut().enumerate() {
            pause_every(LINKS_A_STEP, done).await;
            item.declared = last.declared;
            item.config = last.config.clone();
        }
    }
}
