//! Compounds and groups.

use super::level::{Level, Lowering};
use super::naming;
use crate::class::{Class, ClassId, Compound, ConfigText, Parameter, PartKind, SourceSpan};
use crate::steps::Computation;
use crate::tree::{self, Body, Formal, Statement};
use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::rc::Rc;
use alloc::string::String;

impl Lowering<'_, '_> {
    /// Lowers a compound and binds `name` to it.
    pub(super) fn compound<'a>(
        &'a mut self,
        compound: &'a tree::Compound,
        name: &'a Rc<str>,
    ) -> Computation<'a, ClassId> {
        Box::pin(self.compound_in_steps(compound, name))
    }

    async fn compound_in_steps(&mut self, compound: &tree::Compound, name: &Rc<str>) -> ClassId {
        let extends = compound.extends.map(|dots| {
            self.compilation.find_class(name).unwrap_or_else(|| {
                let message = format!("cannot extend unknown element class ‘{name}’");
                self.compilation.error(self.source_span(dots), message);
                self.unknown_class(name.clone())
            })
        });
        let mut first: Option<ClassId> = None;
        let mut last: Option<Rc<Compound>> = None;
        for body in &compound.bodies {
            let body = Rc::new(self.body(body, name).await);
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

    async fn body(&mut self, body: &Body, name: &Rc<str>) -> Compound {
        let depth = self.levels.len();
        let span = self.source_span(body.open);
        self.levels.push(Level::new(name.clone(), span, depth));
        let scope = self.compilation.classes.enter();
        for pseudo in ["input", "output"] {
            self.add_part(pseudo.into(), PartKind::Pseudo, ConfigText::default(), span);
        }
        self.formals(&body.formals);
        self.statements(&body.statements).await;
        self.syntax_errors(body.errors);
        let ports = self.check_ports([0, 1], 0, name, span);
        self.compilation.classes.leave(scope);
        self.level().compound.ports = ports;
        naming::settle_names(self.level()).await;
        self.leave_level().await
    }

    fn formals(&mut self, formals: &[Formal]) {
        let mut misplaced = false;
        let mut keywords = BTreeSet::new();
        for formal in formals {
            let name: Rc<str> = self.slice(formal.variable).trim_start_matches('$').into();
            let keyword = formal.keyword.map_or_else(|| Rc::from(""), |span| self.slice(span));
            let span = self.source_span(formal.variable);
            if !self.level().variables.insert(name.clone()) {
                self.compilation.error(span, format!("parameter ‘${name}’ multiply defined"));
                continue;
            }
            let repeated = !keyword.is_empty() && !keywords.insert(keyword.clone());
            let parameters = &mut self.level().compound.parameters;
            let after = parameters.last().map(|last| last.keyword.clone());
            parameters.push(Parameter { name, keyword: keyword.clone() });
            if repeated {
                let message = format!("repeated keyword parameter ‘{keyword}’ in compound element");
                self.compilation.error(span, message);
            }
            let out_of_order =
                after.is_some_and(|after| (keyword.is_empty() && !after.is_empty()) || &*after == "__REST__");
            if out_of_order && !misplaced {
                misplaced = true;
                let message = "compound element parameters out of order\n\
                    (The correct order is ‘[positional], [keywords], [__REST__]’.)";
                self.compilation.error(span, message);
            }
        }
    }

    /// Lowers a group. Returns its part index and port counts.
    pub(super) fn group<'a>(
        &'a mut self,
        statements: &'a [Statement],
        name: String,
        span: SourceSpan,
    ) -> Computation<'a, (usize, [usize; 2])> {
        Box::pin(self.group_in_steps(statements, name, span))
    }

    async fn group_in_steps(
        &mut self,
        statements: &[Statement],
        name: String,
        span: SourceSpan,
    ) -> (usize, [usize; 2]) {
        let group = self.add_part(name.clone(), PartKind::Group, ConfigText::default(), span);
        let parts = [("input", PartKind::GroupInput), ("output", PartKind::GroupOutput)];
        let outer = parts.map(|(pseudo, kind)| {
            let part = self.add_part(format!("{name}/{pseudo}"), kind, ConfigText::default(), span);
            (pseudo, self.level().names.insert(pseudo.into(), part))
        });
        let links = self.level().compound.links.len();
        self.statements(statements).await;
        let ports = self.check_ports([group + 1, group + 2], links, "<anonymous group>", span);
        // If a port is missing there are fewer links than ports; ports beyond that number are not worth listing.
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

    /// Checks, in the links from index `links` on, that a compound's or group's `input` and `output` are used in the
    /// right direction and without gaps. Returns the port counts.
    fn check_ports(&mut self, parts: [usize; 2], links: usize, name: &str, span: SourceSpan) -> [usize; 2] {
        let name = if name.is_empty() { "<anonymous>" } else { name };
        let compound = &self.level().compound;
        let counts = [compound.parts[parts[0]].ports[1], compound.parts[parts[1]].ports[0]];
        let misused = [0, 1].map(|side| compound.parts[parts[side]].ports[side] > 0);
        let inputs = compound.links[links..].iter().map(|link| link.from);
        let outputs = compound.links[links..].iter().map(|link| link.to);
        let used: [BTreeSet<usize>; 2] = [
            sorting::collect(inputs.filter(|end| end.0 == parts[0]).map(|end| end.1)),
            sorting::collect(outputs.filter(|end| end.0 == parts[1]).map(|end| end.1)),
        ];
        for side in [0, 1] {
            let names = ["input", "output"];
            let (this, other) = (names[side], names[1 - side]);
            if misused[side] {
                let message = format!("‘{name}’ pseudoelement ‘{this}’ may only be used as {other}");
                self.compilation.error(span, message);
            }
            if used[side].len() < counts[side] {
                for port in (0..counts[side]).filter(|port| !used[side].contains(port)) {
                    self.compilation.error(span, format!("‘{name}’ {this} {port} missing"));
                    if !self.compilation.diagnostics.has_room() {
                        break;
                    }
                }
            }
        }
        counts
    }
}
