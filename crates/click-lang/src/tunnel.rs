//! Connections through the ports of compounds and groups: from real element to real element.

use crate::Limits;
use crate::class::Link;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// What an element of the flat list is to connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A real one: connections end there.
    Element,
    /// A compound or group: what comes in goes on from its input, what goes out comes from its output.
    Outer {
        /// Its input, inside.
        input: usize,
        /// Its output, inside.
        output: usize,
    },
    /// The input of a compound or group.
    Input {
        /// The compound or group.
        outer: usize,
    },
    /// The output of a compound or group.
    Output {
        /// The compound or group.
        outer: usize,
    },
    /// One that could not be made, which was reported.
    Failed,
}

/// Something wrong with a port of a compound or group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Problem {
    /// The compound or group; for a misuse its input or output.
    pub(crate) element: usize,
    /// What is wrong.
    pub(crate) what: What,
    /// The port.
    pub(crate) port: usize,
}

/// What is wrong with a port of a compound or group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum What {
    /// Something is connected to an input that it doesn't have.
    NoInput,
    /// Something is connected from an output that it doesn't have.
    NoOutput,
    /// Its input has nothing connected to it.
    UnusedInput,
    /// Its output is connected to nothing.
    UnusedOutput,
    /// An output pseudo element is used as if packets came out of it.
    UsedAsOutput,
    /// An input pseudo element is used as if packets went into it.
    UsedAsInput,
    /// There are too many.
    TooMany,
}

impl Problem {
    /// The message; `name` is the element's.
    pub(crate) fn message(&self, name: &str) -> String {
        let port = self.port;
        match self.what {
            What::NoInput => format!("‘{name}’ has no input {port}"),
            What::NoOutput => format!("‘{name}’ has no output {port}"),
            What::UnusedInput => format!("‘{name}’ input {port} unused"),
            What::UnusedOutput => format!("‘{name}’ output {port} unused"),
            What::UsedAsOutput => format!("‘{name}’ used as output"),
            What::UsedAsInput => format!("‘{name}’ used as input"),
            What::TooMany => "too many connections through compound elements".into(),
        }
    }
}

/// Follows connections through compounds and groups.
pub(crate) struct Resolver<'r> {
    kinds: &'r [Kind],
    /// Ordered by source.
    links: Vec<Link>,
    /// The ports that connections go to.
    targets: Vec<(usize, usize)>,
    problems: Vec<Problem>,
    steps: usize,
    connections: usize,
}

impl<'r> Resolver<'r> {
    /// Prepares the links between elements of these kinds.
    pub(crate) fn new(kinds: &'r [Kind], links: &[Link], limits: &Limits) -> Self {
        let mut ordered = links.to_vec();
        ordered.sort_by_key(|link| link.from);
        let mut targets: Vec<_> = links.iter().map(|link| link.to).collect();
        targets.sort_unstable();
        targets.dedup();
        Self {
            kinds,
            links: ordered,
            targets,
            problems: Vec::new(),
            steps: limits.tunnel_steps,
            connections: limits.connections,
        }
    }

    /// Returns the connections between real elements, each once, ordered by target and source.
    pub(crate) fn resolve(&mut self) -> Vec<Link> {
        self.check();
        let mut found: Vec<Link> = Vec::new();
        let mut next = 0;
        while next < self.links.len() {
            let from = self.links[next].from;
            let group = next..next + self.outgoing(from).len();
            next = group.end;
            if self.kinds[from.0] != Kind::Element {
                continue;
            }
            for index in group {
                let link = self.links[index];
                let targets = self.targets_of(link.to);
                if found.len() + targets.len() > self.connections {
                    self.too_many(from.0);
                    break;
                }
                found.extend(targets.into_iter().map(|to| Link { to, ..link }));
            }
        }
        found.sort_by_key(|link| (link.to, link.from));
        found.dedup_by_key(|link| (link.to, link.from));
        found
    }

    /// What was found to be wrong.
    pub(crate) fn into_problems(self) -> Vec<Problem> {
        self.problems
    }

    /// The links that leave an output port.
    fn outgoing(&self, from: (usize, usize)) -> &[Link] {
        let start = self.links.partition_point(|link| link.from < from);
        let count = self.links[start..].partition_point(|link| link.from == from);
        &self.links[start..start + count]
    }

    /// Where what goes into an input port of a compound, or into its output, comes out; `None` for a real element,
    /// and for an input, which nothing can go into.
    fn passage(&self, to: (usize, usize)) -> Option<(usize, usize)> {
        match self.kinds[to.0] {
            Kind::Outer { input, .. } => Some((input, to.1)),
            Kind::Output { outer } => Some((outer, to.1)),
            Kind::Element | Kind::Input { .. } | Kind::Failed => None,
        }
    }

    /// The real elements' ports that packets reach which go into `to`.
    fn targets_of(&mut self, to: (usize, usize)) -> Vec<(usize, usize)> {
        let mut found = Vec::new();
        let mut seen = BTreeSet::new();
        let mut open = alloc::vec![to];
        while let Some(to) = open.pop() {
            if self.kinds[to.0] == Kind::Element {
                found.push(to);
                continue;
            }
            let Some(passage) = self.passage(to) else { continue };
            if !seen.insert(passage) {
                continue;
            }
            let count = self.outgoing(passage).len() + 1;
            if self.steps < count {
                self.steps = 0;
                self.too_many(passage.0);
                return Vec::new();
            }
            self.steps -= count;
            open.extend(self.outgoing(passage).iter().map(|link| link.to));
        }
        found
    }

    fn too_many(&mut self, element: usize) {
        if !self.problems.iter().any(|problem| problem.what == What::TooMany) {
            self.problems.push(Problem { element, port: 0, what: What::TooMany });
        }
    }

    /// Looks for ports of compounds and groups that are connected on one side only.
    fn check(&mut self) {
        let mut problems = BTreeSet::new();
        for link in &self.links {
            let (from, to) = (link.from, link.to);
            let incoming = |element| self.targets.binary_search(&(element, from.1)).is_ok();
            let problem = match self.kinds[from.0] {
                Kind::Outer { output, .. } if !incoming(output) => Some((from.0, What::NoOutput)),
                Kind::Input { outer } if !incoming(outer) => Some((outer, What::UnusedInput)),
                Kind::Output { .. } => Some((from.0, What::UsedAsOutput)),
                _ => None,
            };
            problems.extend(problem.map(|(element, what)| Problem { element, port: from.1, what }));
            let outgoing = |element| !self.outgoing((element, to.1)).is_empty();
            let problem = match self.kinds[to.0] {
                Kind::Outer { input, .. } if !outgoing(input) => Some((to.0, What::NoInput)),
                Kind::Output { outer } if !outgoing(outer) => Some((outer, What::UnusedOutput)),
                Kind::Input { .. } => Some((to.0, What::UsedAsInput)),
                _ => None,
            };
            problems.extend(problem.map(|(element, what)| Problem { element, port: to.1, what }));
        }
        self.problems.extend(problems);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class::Place;

    /// Element 0 is a compound with input 1 and output 2; from 3 on there are real elements.
    fn kinds() -> Vec<Kind> {
        let compound =
            [Kind::Outer { input: 1, output: 2 }, Kind::Input { outer: 0 }, Kind::Output { outer: 0 }];
        compound.into_iter().chain([Kind::Element; 4]).collect()
    }

    type Outcome = (Vec<(usize, usize)>, Vec<(usize, What)>);

    fn resolve(links: &[(usize, usize)]) -> Outcome {
        let link =
            |&(from, to): &(usize, usize)| Link { from: (from, 0), to: (to, 0), place: Place::default() };
        let links: Vec<Link> = links.iter().map(link).collect();
        let kinds = kinds();
        let mut resolver = Resolver::new(&kinds, &links, &Limits::default());
        let found = resolver.resolve().iter().map(|link| (link.from.0, link.to.0)).collect();
        (found, resolver.into_problems().iter().map(|problem| (problem.element, problem.what)).collect())
    }

    #[test]
    fn connections_go_through_compounds() {
        let check = |links: &[_], expected: &[_], problems: &[_]| {
            assert_eq!(resolve(links), (expected.to_vec(), problems.to_vec()), "{links:?}");
        };
        check(&[(3, 4)], &[(3, 4)], &[]);
        check(&[(3, 0), (1, 2), (0, 4)], &[(3, 4)], &[]);
        check(&[(3, 0), (5, 0), (1, 4), (1, 6)], &[(3, 4), (5, 4), (3, 6), (5, 6)], &[]);
        check(&[(3, 0)], &[], &[(0, What::NoInput)]);
        check(&[(1, 4)], &[], &[(0, What::UnusedInput)]);
        check(&[(0, 4)], &[], &[(0, What::NoOutput)]);
        check(&[(4, 2)], &[], &[(0, What::UnusedOutput)]);
        check(&[(2, 1)], &[], &[(1, What::UsedAsInput), (2, What::UsedAsOutput)]);
        // Its output goes back to its input: nothing ever comes out, and following it ends.
        check(&[(3, 0), (1, 2), (0, 0)], &[], &[]);
    }
}
