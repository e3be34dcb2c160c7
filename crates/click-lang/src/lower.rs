//! Statements to compounds: every name is looked up, every connection made, inside the compound that it stands in.

use crate::class::{Class, ClassId, Compound, Link, Parameter, Part, PartKind, Place};
use crate::compile::Compilation;
use crate::connect::{self, Side};
use crate::lexer;
use crate::tree::{
    self, Body, ClassUse, Connector, Formal, Item, Span, Statement, StatementKind, Step, Subject,
    SyntaxError, Tree,
};
use crate::{Diagnostic, Requirement, Severity, config};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::cell::Cell;
use core::ops::Range;

/// Lowers a configuration: returns its outermost level, in which all classes are resolved.
pub(crate) fn lower(compilation: &mut Compilation<'_>, text: &str) -> Compound {
    let mut lowering = Lowering {
        compilation,
        levels: Vec::new(),
        source: 0,
        errors: Vec::new().into_iter(),
        libraries: Vec::new(),
        requiring: 0,
    };
    lowering.levels.push(Level::new(Rc::from(""), Place::default(), 0));
    let name = lowering.compilation.options.file;
    lowering.text(name, text);
    match lowering.levels.pop() {
        Some(level) => level.compound,
        None => Level::new(Rc::from(""), Place::default(), 0).compound,
    }
}

/// A compound that is being read.
struct Level {
    compound: Compound,
    names: BTreeMap<Rc<str>, usize>,
    /// The variables that it has a parameter or a definition for.
    variables: BTreeSet<Rc<str>>,
}

impl Level {
    fn new(name: Rc<str>, place: Place, depth: usize) -> Self {
        let compound = Compound {
            name,
            place,
            depth,
            parameters: Vec::new(),
            definitions: Vec::new(),
            parts: Vec::new(),
            links: Vec::new(),
            ports: [0, 0],
            next: Cell::new(None),
        };
        Self { compound, names: BTreeMap::new(), variables: BTreeSet::new() }
    }
}

/// An item of a chain, half resolved: groups and compounds in it are done, its name is not looked up as an element.
struct Resolved<'t> {
    item: &'t Item,
    /// The element's or class's name.
    name: Rc<str>,
    /// What the name means as a class.
    class: Option<ClassId>,
    /// The class behind `::`.
    declared: Option<ClassId>,
    config: Rc<str>,
    /// A group's part and number of ports.
    group: Option<(usize, [usize; 2])>,
    place: Place,
}

struct Lowering<'c, 'o> {
    compilation: &'c mut Compilation<'o>,
    levels: Vec<Level>,
    /// The source being read.
    source: u32,
    /// Its syntax errors that are not reported yet.
    errors: alloc::vec::IntoIter<SyntaxError>,
    libraries: Vec<String>,
    requiring: usize,
}

impl Lowering<'_, '_> {
    fn text(&mut self, name: &str, text: &str) {
        let tree = Tree::parse_within(text, &self.compilation.options.limits);
        let source = self.compilation.add_source(name, &tree);
        let outer_source = core::mem::replace(&mut self.source, source);
        let outer_errors = core::mem::replace(&mut self.errors, tree.errors().to_vec().into_iter());
        self.statements(tree.statements());
        self.syntax_errors(u32::MAX);
        self.source = outer_source;
        self.errors = outer_errors;
    }

    /// Reports the syntax errors before an offset, so that all errors come in the order of the text.
    fn syntax_errors(&mut self, before: u32) {
        while let Some(error) = self.errors.as_slice().first()
            && error.span.start < before
        {
            let place = self.place(error.span);
            if let Some(error) = self.errors.next() {
                self.compilation.error(place, error.message);
            }
        }
    }

    fn place(&self, span: Span) -> Place {
        Place { source: self.source, span }
    }

    fn slice(&self, span: Span) -> Rc<str> {
        self.compilation.slice(self.place(span)).into()
    }

    fn level(&mut self) -> &mut Level {
        let last = self.levels.len() - 1;
        &mut self.levels[last]
    }

    fn part(&mut self, index: usize) -> &mut Part {
        &mut self.level().compound.parts[index]
    }

    // Statements

    fn statements(&mut self, statements: &[Statement]) {
        let mut ends_output = true;
        for statement in statements {
            self.syntax_errors(statement.span.start);
            match &statement.kind {
                StatementKind::Chain(steps) => ends_output = self.chain(steps, ends_output),
                StatementKind::ElementClass { name, class } => self.element_class(*name, class.as_ref()),
                StatementKind::Define(text) => self.define(*text),
                StatementKind::Require(text) => self.require(*text),
                StatementKind::Provide(text) => {
                    let text = self.slice(*text);
                    let text = lexer::config_text(&text);
                    let provisions =
                        config::arguments(&text).into_iter().map(|argument| argument.into_owned());
                    self.compilation.graph.provisions.extend(provisions);
                }
            }
        }
    }

    fn element_class(&mut self, name: Option<Span>, class: Option<&ClassUse>) {
        let name = name.map_or_else(|| Rc::from(""), |span| self.slice(span));
        let id = match class {
            Some(ClassUse::Compound(compound)) => {
                self.compound(compound, &name);
                return;
            }
            Some(ClassUse::Named(span)) => self.class_named(*span),
            Some(ClassUse::Missing(_)) | None => self.compilation.classes.add(Class::Primitive(name.clone())),
        };
        self.compilation.classes.name(name, id);
    }

    /// Looks a class up; an unknown one is reported, and known from then on.
    fn class_named(&mut self, span: Span) -> ClassId {
        let name = self.slice(span);
        if let Some(id) = self.compilation.find_class(&name) {
            return id;
        }
        let message = format!("unknown element class ‘{name}’");
        self.compilation.unknown(self.place(span), message, &name, core::iter::empty());
        self.unknown_class(name)
    }

    fn unknown_class(&mut self, name: Rc<str>) -> ClassId {
        let id = self.compilation.classes.add(Class::Primitive(name.clone()));
        self.compilation.classes.name(name, id);
        id
    }

    fn define(&mut self, span: Span) {
        let text = self.slice(span);
        let text = lexer::config_text(&text);
        for argument in config::arguments(&text) {
            if argument.is_empty() {
                continue;
            }
            let (variable, value) = config::first_word(&argument);
            let name = variable.strip_prefix('$').unwrap_or_default();
            if name.is_empty() || !name.bytes().all(config::is_variable_byte) {
                self.compilation.error(self.place(span), "bad ‘define’ declaration: not a variable");
                continue;
            }
            if self.level().variables.insert(name.into()) {
                self.level().compound.definitions.push((name.into(), value.into()));
            } else {
                let message = format!("parameter ‘${name}’ multiply defined");
                self.compilation.error(self.place(span), message);
            }
        }
    }

    fn require(&mut self, span: Span) {
        let text = self.slice(span);
        let text = lexer::config_text(&text);
        let place = self.place(span);
        for argument in config::arguments(&text) {
            let words = config::words(&argument);
            let unquoted = |word: &str| String::from_utf8_lossy(&config::unquote(word)).into_owned();
            let first = words.first().map(|word| unquoted(word)).unwrap_or_default();
            let (kind, value) = match (first.as_str(), words.get(1), words.len()) {
                (_, _, 0) => continue,
                ("compact_config", None, _) => ("compact_config", String::new()),
                (name, None, _) if !matches!(name, "" | "package" | "library") => ("package", first.clone()),
                ("package", Some(name), 2) => ("package", unquoted(name)),
                ("library", Some(name), 2) => {
                    self.library(place, &unquoted(name));
                    continue;
                }
                _ => {
                    self.compilation.error(place, "syntax error at requirement");
                    continue;
                }
            };
            let location = self.compilation.location(place);
            self.compilation.graph.requirements.push(Requirement { kind: kind.into(), value, location });
        }
    }

    fn library(&mut self, place: Place, name: &str) {
        let limits = &self.compilation.options.limits;
        if self.levels.len() > 1 {
            self.compilation.error(place, "‘require library’ must be used at file scope");
            return;
        }
        let folder = self.compilation.folder(self.source, place.span);
        let found = self.compilation.options.reader.and_then(|reader| reader(name, &folder));
        let Some(library) = found else {
            let message = format!("library ‘{name}’ not found in CLICKPATH/conf");
            self.compilation.error(place, message);
            return;
        };
        if self.libraries.contains(&library.path) {
            return;
        }
        if self.libraries.len() >= limits.libraries || self.requiring >= limits.nesting {
            self.compilation.error(place, "too many libraries");
            return;
        }
        self.libraries.push(library.path.clone());
        self.requiring += 1;
        self.text(&library.path, &library.text);
        self.requiring -= 1;
    }

    // Compounds and groups

    /// Reads a compound and lets `name` mean it.
    fn compound(&mut self, compound: &tree::Compound, name: &Rc<str>) -> ClassId {
        let extends = compound.extends.map(|dots| {
            self.compilation.find_class(name).unwrap_or_else(|| {
                let message = format!("cannot extend unknown element class ‘{name}’");
                self.compilation.error(self.place(dots), message);
                self.unknown_class(name.clone())
            })
        });
        let mut first: Option<ClassId> = None;
        let mut last: Option<Rc<Compound>> = None;
        for body in &compound.bodies {
            let body = Rc::new(self.body(body, name));
            let id = self.compilation.classes.add(Class::Compound(body.clone()));
            if let Some(last) = last.replace(body) {
                last.next.set(Some(id));
            }
            first = first.or(Some(id));
        }
        if let Some(last) = last {
            last.next.set(extends);
        }
        let first = first.unwrap_or_else(|| self.compilation.classes.add(Class::Primitive(name.clone())));
        self.compilation.classes.name(name.clone(), first);
        first
    }

    fn body(&mut self, body: &Body, name: &Rc<str>) -> Compound {
        let depth = self.levels.len();
        let place = self.place(body.open);
        self.levels.push(Level::new(name.clone(), place, depth));
        let scope = self.compilation.classes.enter();
        for pseudo in ["input", "output"] {
            self.add_part(pseudo.into(), PartKind::Pseudo, Rc::from(""), place);
        }
        self.formals(&body.formals);
        self.statements(&body.statements);
        let ports = self.check_ports([0, 1], 0, name, place);
        self.compilation.classes.leave(scope);
        let mut level = self.levels.pop().unwrap_or_else(|| Level::new(name.clone(), place, depth));
        level.compound.ports = ports;
        settle_names(&mut level);
        level.compound
    }

    fn formals(&mut self, formals: &[Formal]) {
        let mut misplaced = false;
        let mut keywords = BTreeSet::new();
        for formal in formals {
            let name: Rc<str> = self.slice(formal.variable).trim_start_matches('$').into();
            let keyword = formal.keyword.map_or_else(|| Rc::from(""), |span| self.slice(span));
            let place = self.place(formal.variable);
            if !self.level().variables.insert(name.clone()) {
                self.compilation.error(place, format!("parameter ‘${name}’ multiply defined"));
                continue;
            }
            let repeated = !keyword.is_empty() && !keywords.insert(keyword.clone());
            let parameters = &mut self.level().compound.parameters;
            let after = parameters.last().map(|last| last.keyword.clone());
            parameters.push(Parameter { name, keyword: keyword.clone() });
            if repeated {
                let message = format!("repeated keyword parameter ‘{keyword}’ in compound element");
                self.compilation.error(place, message);
            }
            let out_of_order =
                after.is_some_and(|after| (keyword.is_empty() && !after.is_empty()) || &*after == "__REST__");
            if out_of_order && !misplaced {
                misplaced = true;
                let message = "compound element parameters out of order\n\
                    (The correct order is ‘[positional], [keywords], [__REST__]’.)";
                self.compilation.error(place, message);
            }
        }
    }

    /// Reads a group. Returns its part and the number of its ports.
    fn group(&mut self, statements: &[Statement], name: String, place: Place) -> (usize, [usize; 2]) {
        let group = self.add_part(name.clone(), PartKind::Group, Rc::from(""), place);
        let parts = [("input", PartKind::GroupInput), ("output", PartKind::GroupOutput)];
        let outer = parts.map(|(pseudo, kind)| {
            let part = self.add_part(format!("{name}/{pseudo}"), kind, Rc::from(""), place);
            (pseudo, self.level().names.insert(pseudo.into(), part))
        });
        let links = self.level().compound.links.len();
        self.statements(statements);
        let ports = self.check_ports([group + 1, group + 2], links, "<anonymous group>", place);
        // With a port missing there are fewer links than ports; the ports beyond are not worth listing.
        let made = self.level().compound.links.len() - links;
        let ports = ports.map(|count| count.min(made));
        for (pseudo, part) in outer {
            match part {
                Some(part) => self.level().names.insert(pseudo.into(), part),
                None => self.level().names.remove(pseudo),
            };
        }
        (group, ports)
    }

    /// Checks that a compound's or group's `input` and `output` are used without gaps and the right way round, in the
    /// links from `links` on. Returns the numbers of ports.
    fn check_ports(&mut self, parts: [usize; 2], links: usize, name: &str, place: Place) -> [usize; 2] {
        let name = if name.is_empty() { "<anonymous>" } else { name };
        let compound = &self.level().compound;
        let counts = [compound.parts[parts[0]].ports[1], compound.parts[parts[1]].ports[0]];
        let misused = [0, 1].map(|side| compound.parts[parts[side]].ports[side] > 0);
        let inputs = compound.links[links..].iter().map(|link| link.from);
        let outputs = compound.links[links..].iter().map(|link| link.to);
        let used: [BTreeSet<usize>; 2] = [
            inputs.filter(|end| end.0 == parts[0]).map(|end| end.1).collect(),
            outputs.filter(|end| end.0 == parts[1]).map(|end| end.1).collect(),
        ];
        for side in [0, 1] {
            let names = ["input", "output"];
            let (this, other) = (names[side], names[1 - side]);
            if misused[side] {
                let message = format!("‘{name}’ pseudoelement ‘{this}’ may only be used as {other}");
                self.compilation.error(place, message);
            }
            if used[side].len() < counts[side] {
                for port in (0..counts[side]).filter(|port| !used[side].contains(port)) {
                    self.compilation.error(place, format!("‘{name}’ {this} {port} missing"));
                    if !self.compilation.diagnostics.has_room() {
                        break;
                    }
                }
            }
        }
        counts
    }

    // Chains

    /// Reads a chain; returns whether it ends at the `output` of what surrounds it.
    fn chain(&mut self, steps: &[Step], mut ends_output: bool) -> bool {
        let mut before: Option<Vec<Side>> = None;
        for (index, step) in steps.iter().enumerate() {
            let next = steps.get(index + 1).and_then(|next| next.connector);
            if let ([Item { subject: Subject::Implicit, span, outputs: None, .. }, ..], Some(connector)) =
                (step.items.as_slice(), next)
                && index == 0
                && !ends_output
            {
                self.suggest_start(*span, connector);
            }
            let sides = self.step(step, index == 0, next.is_some());
            if let (Some(before), Some(connector)) = (&before, step.connector) {
                self.connect(before, &sides, connector);
            } else if sides.iter().any(|side| !side.inputs.numbers.is_empty()) {
                self.compilation
                    .error(self.place(step.items[0].span), "input ports ignored at start of chain");
            }
            before = Some(sides);
        }
        let Some((last, sides)) = steps.last().zip(before) else { return ends_output };
        let ignored = last.items.iter().zip(&sides).find(|(_, side)| !side.outputs.numbers.is_empty());
        if let Some((item, _)) = ignored {
            self.compilation.error(self.place(item.span), "output ports ignored at end of chain");
        }
        let output = self.level().names.get("output").copied();
        ends_output = matches!(sides.as_slice(), [side] if Some(side.part) == output);
        ends_output
    }

    fn suggest_start(&mut self, span: Span, connector: Connector) {
        let arrow = if connector.double { "=>" } else { "->" };
        let location = self.compilation.location(self.place(span));
        let message = format!("suggest ‘input {arrow}’ or ‘[0] {arrow}’ to start connection");
        self.compilation.diagnostics.push(Diagnostic::new(Severity::Warning, location, message));
    }

    fn step(&mut self, step: &Step, first: bool, connected: bool) -> Vec<Side> {
        let mut resolved: Vec<Resolved<'_>> = Vec::with_capacity(step.items.len());
        for item in &step.items {
            let item = self.item(item, first);
            resolved.push(item);
        }
        if first && !connected {
            spread_declaration(&mut resolved);
        }
        resolved.into_iter().map(|item| self.side(item)).collect()
    }

    fn item<'t>(&mut self, item: &'t Item, first: bool) -> Resolved<'t> {
        let place = self.place(item.span);
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
                class = Some(self.compound(compound, &name));
                name
            }
            Subject::Group(statements) => {
                let name = self.anonymous_name("");
                group = Some(self.group(statements, name.clone(), place));
                name.into()
            }
        };
        let declared = match &item.class {
            Some(ClassUse::Named(span)) => Some(self.class_named(*span)),
            Some(ClassUse::Compound(compound)) => Some(self.compound(compound, &Rc::from(""))),
            Some(ClassUse::Missing(_)) => Some(match class {
                Some(class) => class,
                None => self.unknown_class(name.clone()),
            }),
            None => None,
        };
        let config = item.config.map_or_else(
            || Rc::from(""),
            |span| {
                if group.is_some() || self.level().names.contains_key(&name) {
                    let place = self.place(item.span);
                    self.compilation.error(place, "configuration string ignored on element reference");
                }
                let text = self.slice(span);
                match lexer::config_text(&text) {
                    alloc::borrow::Cow::Borrowed(_) => text,
                    alloc::borrow::Cow::Owned(text) => text.into(),
                }
            },
        );
        Resolved { item, name, class, declared, config, group, place }
    }

    /// Finds or makes the element that an item means.
    fn side(&mut self, resolved: Resolved<'_>) -> Side {
        let Resolved { item, name, class, declared, config, group, place } = resolved;
        let mut side = Side {
            part: 0,
            inputs: item.inputs.clone().unwrap_or_default(),
            outputs: item.outputs.clone().unwrap_or_default(),
        };
        if let Some((part, [inputs, outputs])) = group {
            side.part = part;
            // A group's ports are implied on both sides, unless others are written.
            if item.inputs.is_none() {
                side.inputs.numbers = (0..inputs as u32).collect();
            }
            if item.outputs.is_none() {
                side.outputs.numbers = (0..outputs as u32).collect();
            }
            if declared.is_some() {
                self.compilation.error(place, "a group can’t be declared as an element");
            }
            return side;
        }
        let known = if class.is_none() { self.level().names.get(&name).copied() } else { None };
        if let Some(part) = known {
            side.part = part;
            if declared.is_some() {
                self.redeclared(place, &name, part);
            }
            return side;
        }
        side.part = match (class, declared) {
            (Some(class), declared) => {
                if declared.is_some() {
                    self.compilation.error(place, format!("class ‘{name}’ used as element name"));
                }
                let name = self.anonymous_name(&name);
                self.add_part(name, PartKind::Element(class), config, place)
            }
            (None, Some(class)) => self.add_part(name.to_string(), PartKind::Element(class), config, place),
            (None, None) => {
                let known = &self.levels[self.levels.len() - 1].names;
                let message = format!("undeclared element ‘{name}’");
                self.compilation.unknown(place, message, &name, known.keys().map(|name| &**name));
                let class = self.unknown_class(name.clone());
                let name = self.anonymous_name(&name);
                self.add_part(name, PartKind::Element(class), config, place)
            }
        };
        side
    }

    fn redeclared(&mut self, place: Place, name: &str, part: usize) {
        let message = format!("redeclaration of element ‘{name}’");
        let Part { kind, place: other, .. } = *self.part(part);
        if matches!(kind, PartKind::Element(_)) {
            let related = format!("element ‘{name}’ previously declared here");
            self.compilation.error_and(place, message, other, related);
        } else {
            self.compilation.error(place, message);
        }
    }

    fn connect(&mut self, from: &[Side], to: &[Side], connector: Connector) {
        let place = self.place(connector.span);
        let limit = self.compilation.options.limits.connections;
        let room = limit.saturating_sub(self.level().compound.links.len());
        let made = connect::connect(from, to, connector.double, room);
        for message in made.errors {
            self.compilation.error(place, message);
        }
        let compound = &mut self.level().compound;
        for (from, to) in made.links {
            let outputs = &mut compound.parts[from.0].ports[1];
            *outputs = (*outputs).max(from.1 + 1);
            let inputs = &mut compound.parts[to.0].ports[0];
            *inputs = (*inputs).max(to.1 + 1);
            compound.links.push(Link { from, to, place });
        }
    }

    // Parts

    /// The name of a new element of a class that isn't given one, until its number is settled.
    fn anonymous_name(&mut self, class: &str) -> String {
        let compound = &self.level().compound;
        let pseudo = if compound.depth > 0 { 2 } else { 0 };
        format!(";{class}@{}", compound.parts.len() - pseudo + 1)
    }

    fn add_part(&mut self, name: String, kind: PartKind, config: Rc<str>, place: Place) -> usize {
        let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if name.split('/').any(all_digits) {
            self.compilation.error(place, format!("element name ‘{name}’ has all-digit component"));
        }
        let level = self.level();
        let index = level.compound.parts.len();
        level.names.insert(name.as_str().into(), index);
        level.compound.parts.push(Part { name, kind, config, place, ports: [0, 0] });
        index
    }
}

/// `a, b, c :: Class(config)` declares all three: gives class and configuration of the last to those before.
fn spread_declaration(items: &mut [Resolved<'_>]) {
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
        for item in others {
            item.declared = last.declared;
            item.config = last.config.clone();
        }
    }
}

/// Gives the anonymous elements of a compound their names.
fn settle_names(level: &mut Level) {
    let mut settling = Settling::default();
    for (index, part) in level.compound.parts.iter_mut().enumerate() {
        if let Some(name) = part.name.strip_prefix(';') {
            part.name = settling.free_name(name, |name| level.names.contains_key(name));
            level.names.insert(part.name.as_str().into(), index);
        }
    }
}

/// Finds names for anonymous elements.
///
/// Remembers for each class a range of numbers that are taken: otherwise thousands of anonymous elements would each
/// try thousands of numbers that are in use.
#[derive(Default)]
pub(crate) struct Settling {
    taken: BTreeMap<String, Range<u64>>,
}

impl Settling {
    /// Returns `name`, with the number behind its last `@` counted up until the name is not taken.
    pub(crate) fn free_name(&mut self, name: &str, is_taken: impl Fn(&str) -> bool) -> String {
        if !is_taken(name) {
            return name.into();
        }
        let (prefix, number) = name.rsplit_once('@').unwrap_or((name, ""));
        let digits = number.bytes().take_while(u8::is_ascii_digit).count();
        let first: u64 = number[..digits].parse().unwrap_or(0);
        let taken = self.taken.entry(prefix.into()).or_insert(0..0);
        let mut number = first;
        let free = loop {
            number = if taken.contains(&number) { taken.end } else { number + 1 };
            let name = format!("{prefix}@{number}");
            if !is_taken(&name) {
                break name;
            }
        };
        let start = if taken.contains(&first) { taken.start } else { first };
        *taken = start..number + 1;
        free
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_names_are_found_quickly() {
        let mut names: BTreeSet<String> = (1..100_000).map(|number| format!("X@{number}")).collect();
        let mut settling = Settling::default();
        for number in 1..100_000 {
            let name = settling.free_name(&format!("X@{number}"), |name| names.contains(name));
            assert_eq!(name, format!("X@{}", 99_999 + number));
            names.insert(name);
        }
        assert_eq!(settling.free_name("Y@7", |name| names.contains(name)), "Y@7");
    }
}
