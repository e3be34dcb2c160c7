//! Expansion: replaces each use of a compound by the compound's parts.

use crate::class::{Class, ClassId, Compound, ConfigText, Link, PartKind, SourceSpan};
use crate::compilation::Compilation;
use crate::lower::Naming;
use crate::steps::{self, pause, pause_every};
use crate::tree::Span;
use crate::tunnel::{self, FlatKind, LINKS_A_STEP};
use crate::variables::Environment;
use crate::{Diagnostic, Element, config};
use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;

/// Expands the top level of a configuration into the compilation's graph, in steps.
pub(crate) async fn expand(compilation: &mut Compilation<'_>, outermost: Compound) {
    let mut environment = Environment::inside(None);
    for (name, text) in &outermost.definitions {
        environment.set(name.clone(), text.clone());
    }
    for (name, text) in compilation.options.parameters {
        environment.set(name.as_str().into(), text.as_str().into());
    }
    let is_partial = compilation.diagnostics.is_partial();
    let mut expansion = Expansion {
        compilation,
        flat: Vec::new(),
        names: BTreeMap::new(),
        naming: Naming::default(),
        links: Vec::new(),
        depth: 0,
        full: false,
        is_partial,
    };
    expansion.outermost(outermost, &Rc::new(environment)).await;
    expansion.finish().await;
}

/// An element of the flat list.
struct Flat {
    name: Rc<str>,
    kind: FlatKind,
    class: ClassId,
    config: ConfigText,
    span: SourceSpan,
    ports: [usize; 2],
    /// Whether it is the input or output of a compound, or a group in one.
    late: bool,
}

struct Expansion<'c, 'o> {
    compilation: &'c mut Compilation<'o>,
    flat: Vec<Flat>,
    names: BTreeMap<Rc<str>, usize>,
    naming: Naming,
    links: Vec<Link>,
    depth: usize,
    /// Whether a limit was reached, after which nothing is added.
    full: bool,
    /// Whether earlier errors kept parts of the text out, such as a compound's port or argument.
    is_partial: bool,
}

impl Expansion<'_, '_> {
    async fn outermost(&mut self, outermost: Compound, environment: &Rc<Environment>) {
        // A list that grows is moved, which takes long.
        self.flat.reserve(outermost.parts.len());
        // Anonymous elements get their numbers in order of expansion, so that names inside an earlier compound count as
        // taken.
        for part in &outermost.parts {
            let class = if let PartKind::Element(class) = part.kind { class } else { 0 };
            let kind = kind_of(part.kind, self.flat.len());
            self.add(part.name.as_str().into(), kind, class, part.config.clone(), part.span);
            pause().await;
        }
        for (flat, part) in self.flat.iter_mut().zip(&outermost.parts) {
            flat.ports = part.ports;
        }
        steps::free(outermost.parts).await;
        self.links = outermost.links;
        for index in 0..self.flat.len() {
            self.settle_name(index);
            let text = self.flat[index].config.clone();
            self.flat[index].config = self.replace_variables(&text, environment);
            self.element(index, environment).await;
            pause().await;
        }
    }

    /// Gives an anonymous element its final name.
    fn settle_name(&mut self, index: usize) {
        if let Some(name) = self.flat[index].name.strip_prefix(';') {
            let name: Rc<str> = self.naming.free_name(name, |name| self.names.contains_key(name)).into();
            self.names.insert(name.clone(), index);
            self.flat[index].name = name;
        }
    }

    fn replace_variables(&mut self, config: &ConfigText, environment: &Rc<Environment>) -> ConfigText {
        match environment.expand(&config.text, &self.compilation.budget) {
            Cow::Borrowed(_) => config.clone(),
            Cow::Owned(text) => ConfigText { text: text.into(), span: config.span, is_verbatim: false },
        }
    }

    fn add(
        &mut self,
        name: Rc<str>,
        kind: FlatKind,
        class: ClassId,
        config: ConfigText,
        span: SourceSpan,
    ) -> usize {
        let index = self.flat.len();
        self.names.insert(name.clone(), index);
        self.flat.push(Flat { name, kind, class, config, span, ports: [0, 0], late: false });
        index
    }

    /// Replaces an element by the parts of its class, if that is a compound.
    async fn element(&mut self, index: usize, environment: &Rc<Environment>) {
        let flat = &self.flat[index];
        if flat.kind != FlatKind::Element || self.full {
            return;
        }
        let Class::Compound(compound) = self.compilation.classes.get(flat.class) else { return };
        let compound = compound.clone();
        let text = flat.config.clone();
        let arguments: Vec<Rc<str>> = config::arguments(&text.text).into_iter().map(Rc::from).collect();
        match self.choose(index, compound, arguments) {
            Choice::None => self.flat[index].kind = FlatKind::Failed,
            Choice::Class(class) => self.flat[index].class = class,
            Choice::Compound(compound, values) => {
                if self.depth >= self.compilation.options.limits.expansion_depth {
                    self.stop(index, "compound elements nested too deeply");
                    return;
                }
                let inside = Environment::surrounding(environment, compound.depth);
                let mut inside = Environment::inside(inside);
                for (parameter, value) in compound.parameters.iter().zip(values) {
                    inside.set(parameter.name.clone(), value);
                }
                for (name, text) in &compound.definitions {
                    let value = inside.expand(text, &self.compilation.budget);
                    inside.set(name.clone(), value.into());
                }
                self.depth += 1;
                Box::pin(self.compound(index, &compound, &Rc::new(inside))).await;
                self.depth -= 1;
            }
        }
    }

    /// Reports once that a limit was reached, and stops the expansion.
    fn stop(&mut self, index: usize, message: &str) {
        self.flat[index].kind = FlatKind::Failed;
        if !self.full {
            self.full = true;
            let span = self.flat[index].span;
            self.compilation.error(span, message);
            self.compilation.diagnostics.set_partial();
        }
    }

    /// Selects the compound of a class that matches a use.
    fn choose(&mut self, index: usize, first: Rc<Compound>, arguments: Vec<Rc<str>>) -> Choice {
        let ports = self.flat[index].ports;
        let mut closest = None;
        let mut candidates = alloc::vec![first];
        loop {
            let candidate = candidates[candidates.len() - 1].clone();
            let cost = arguments.len() + candidate.parameters.len() + candidate.definitions.len() + 1;
            if !self.compilation.budget.take(cost.saturating_mul(VARIABLE_COST)) {
                return Choice::None;
            }
            if let Some(values) = candidate.assign(&arguments) {
                if candidate.ports == ports {
                    return Choice::Compound(candidate, values);
                }
                closest = Some((candidate.clone(), values));
            }
            let Some(next) = candidate.next.get() else { break };
            match self.compilation.classes.get(next) {
                Class::Compound(compound) => candidates.push(compound.clone()),
                Class::Primitive(_) => return Choice::Class(next),
            }
        }
        // With a single candidate, port errors are reported per port.
        if candidates.len() > 1 || closest.is_none() {
            let span = self.flat[index].span;
            let signature = candidates[0].use_signature(arguments.len(), ports);
            let message = format!("no match for ‘{signature}’");
            let mut diagnostic = Diagnostic::error(self.compilation.location(span), message)
                .printed_at(self.compilation.location(END))
                .following(self.is_partial);
            for (number, candidate) in candidates.iter().take(MAX_CANDIDATES_SHOWN).enumerate() {
                let location = self.compilation.location(candidate.span);
                if number == 0 {
                    diagnostic = diagnostic.with_related(location.clone(), "candidates are:");
                }
                diagnostic = diagnostic.with_related(location, format!("  {}", candidate.signature()));
            }
            self.compilation.diagnostics.push(diagnostic);
            self.compilation.diagnostics.set_partial();
        }
        closest.map_or(Choice::None, |(compound, values)| Choice::Compound(compound, values))
    }

    /// Adds the parts of the compound that the element at `index` uses.
    async fn compound(&mut self, index: usize, compound: &Compound, environment: &Rc<Environment>) {
        let span = self.flat[index].span;
        let name = self.flat[index].name.clone();
        let limits = &self.compilation.options.limits;
        let too_many = self.flat.len() + compound.parts.len() > limits.elements
            || self.links.len() + compound.links.len() > limits.connections;
        if too_many {
            self.stop(index, "too many elements or connections after compound elements are expanded");
            return;
        }
        self.flat.reserve(compound.parts.len());
        // The new index of each part; `None` if its name is taken.
        let mut map: Vec<Option<usize>> = Vec::with_capacity(compound.parts.len());
        let input = self.flat.len();
        self.flat[index].kind = FlatKind::Outer { input, output: input + 1 };
        for part in &compound.parts {
            pause().await;
            let mut part_name = String::with_capacity(name.len() + 1 + part.name.len());
            part_name.extend([&*name, "/", &*part.name]);
            if !self.compilation.budget.take(part_name.len() + part.config.text.len()) {
                self.stop(index, "too much text after compound elements are expanded");
                return;
            }
            if let Some(&other) = self.names.get(part_name.as_str()) {
                let other = self.flat[other].span;
                let message = format!("redeclaration of element ‘{part_name}’");
                let related = format!("‘{part_name}’ previously declared here");
                self.compilation.error_and(span, message, other, related);
                // The compound's input and output are needed even then.
                if part.kind != PartKind::Pseudo {
                    map.push(None);
                    continue;
                }
            }
            if self.compilation.classes.find(&part_name).is_some() {
                self.compilation.error(span, format!("‘{part_name}’ is an element class"));
            }
            let kind = match part.kind {
                PartKind::Pseudo if map.is_empty() => FlatKind::Input { outer: index },
                PartKind::Pseudo => FlatKind::Output { outer: index },
                kind => kind_of(kind, self.flat.len()),
            };
            let class = if let PartKind::Element(class) = part.kind { class } else { 0 };
            let text = self.replace_variables(&part.config, environment);
            let span = match part.kind {
                PartKind::Element(_) => part.span,
                _ => span,
            };
            let added = self.add(part_name.into(), kind, class, text, span);
            self.flat[added].ports = part.ports;
            self.flat[added].late = !matches!(part.kind, PartKind::Element(_));
            map.push(Some(added));
        }
        let end = |(part, port): (usize, usize)| Some((map.get(part).copied().flatten()?, port));
        for (done, link) in compound.links.iter().enumerate() {
            pause_every(LINKS_A_STEP, done).await;
            if let (Some(from), Some(to)) = (end(link.from), end(link.to)) {
                self.links.push(Link { from, to, span: link.span });
            }
        }
        for child in map.into_iter().skip(2).flatten() {
            pause_every(LINKS_A_STEP, child).await;
            self.element(child, environment).await;
        }
    }

    /// Writes elements and connections to the graph, in Click's order.
    async fn finish(mut self) {
        if self.compilation.budget.is_empty() && !self.full {
            let message = "configuration text too long after variables are replaced";
            self.compilation
                .error(self.flat.first().map_or_else(SourceSpan::default, |flat| flat.span), message);
        }
        let kinds: Vec<FlatKind> = self.flat.iter().map(|flat| flat.kind).collect();
        let limits = &self.compilation.options.limits;
        let mut resolver = tunnel::Resolver::new(&kinds, &self.links, limits).await;
        let links = resolver.resolve().await;
        let is_partial = self.compilation.diagnostics.is_partial();
        for problem in resolver.into_problems() {
            let flat = &self.flat[problem.element];
            let span = flat.span;
            let message = problem.message(&flat.name);
            let is_meant = self.compilation.probably_meant.contains(&span);
            let mut diagnostic =
                Diagnostic::error(self.compilation.location(span), message).following(is_partial || is_meant);
            if flat.late {
                diagnostic = diagnostic.printed_at(self.compilation.location(END));
            }
            self.compilation.diagnostics.push(diagnostic);
            self.compilation.diagnostics.set_partial();
        }
        // Names are freed while others are allocated. The C library sorts all memory that was freed at the next allocation, which would
        // take long.
        let mut names = core::mem::take(&mut self.names);
        self.compilation.graph.elements.reserve(self.flat.len());
        let mut numbers = Vec::with_capacity(self.flat.len());
        let flat = core::mem::take(&mut self.flat);
        for element in flat {
            pause().await;
            names.pop_first();
            numbers.push(self.compilation.graph.elements.len());
            if element.kind == FlatKind::Element
                && let Class::Primitive(class) = self.compilation.classes.get(element.class)
            {
                let class = String::from(&**class);
                let location = self.compilation.location(element.span);
                let (name, config) = (String::from(&*element.name), String::from(&*element.config.text));
                let is_verbatim = element.config.is_verbatim;
                let config_location = element.config.span.map(|span| self.compilation.location(span));
                self.compilation.graph.elements.push(Element {
                    name,
                    class,
                    config,
                    location,
                    config_location,
                    is_verbatim,
                });
            }
        }
        steps::free_map(names, NAMES_A_STEP).await;
        self.compilation.graph.connections.reserve(links.len());
        for link in links {
            pause().await;
            let location = self.compilation.location(link.span);
            let port = |(part, port): (usize, usize)| crate::Port { element: numbers[part], port };
            let (from, to) = (port(link.from), port(link.to));
            self.compilation.graph.connections.push(crate::Connection { from, to, location });
        }
    }
}

/// Names that are freed in a step.
const NAMES_A_STEP: usize = 16;

/// The end of the first text: the location that Click reports while it expands compounds.
const END: SourceSpan = SourceSpan { source: 0, span: Span { start: u32::MAX, end: u32::MAX } };

/// The cost in bytes of setting a variable during expansion, in addition to its value.
const VARIABLE_COST: usize = 16;

/// The maximum number of candidates listed in an error: a class may have thousands.
const MAX_CANDIDATES_SHOWN: usize = 20;

enum Choice {
    /// Nothing matches.
    None,
    /// A class that is not a compound, extended by a compound.
    Class(ClassId),
    /// A compound, with its parameter values.
    Compound(Rc<Compound>, Vec<Rc<str>>),
}

/// The kind of a part that is added at `index` of the flat list; a group's input and output follow it directly.
fn kind_of(kind: PartKind, index: usize) -> FlatKind {
    match kind {
        PartKind::Element(_) => FlatKind::Element,
        PartKind::Group => FlatKind::Outer { input: index + 1, output: index + 2 },
        PartKind::GroupInput => FlatKind::Input { outer: index.saturating_sub(1) },
        PartKind::GroupOutput => FlatKind::Output { outer: index.saturating_sub(2) },
        PartKind::Pseudo => FlatKind::Failed,
    }
}
