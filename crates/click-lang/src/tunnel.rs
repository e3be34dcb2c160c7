//! Connections through the ports of compounds and groups: from real element to real element.

use crate::Limits;
use crate::class::Link;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// What an element of the flat list is to connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlatKind {
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PortError {
    /// The compound or group; for a misuse its input or output.
    pub(crate) element: usize,
    /// What is wrong.
    pub(crate) what: PortErrorKind,
    /// The port.
    pub(crate) port: usize,
}

/// What is wrong with a port of a compound or group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PortErrorKind {
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

impl PortError {
    /// The message; `name` is the element's.
    pub(crate) fn message(&self, name: &str) -> String {
        let port = self.port;
        match self.what {
            PortErrorKind::NoInput => format!("‘{name}’ has no input {port}"),
            PortErrorKind::NoOutput => format!("‘{name}’ has no output {port}"),
            PortErrorKind::UnusedInput => format!("‘{name}’ input {port} unused"),
            PortErrorKind::UnusedOutput => format!("‘{name}’ output {port} unused"),
            PortErrorKind::UsedAsOutput => format!("‘{name}’ used as output"),
            PortErrorKind::UsedAsInput => format!("‘{name}’ used as input"),
            PortErrorKind::TooMany => "too many connections through compound elements".into(),
        }
    }
}

/// Follows connections through compounds and groups.
pub(crate) struct Resolver<'r> {
    kinds: &'r [FlatKind],
    /// Ordered by source.
    links: Vec<Link>,
    /// Ordered by target.
    arrivals: Vec<Link>,
    problems: Vec<PortError>,
    steps: usize,
    connections: usize,
}

impl<'r> Resolver<'r> {
    /// Prepares the links between elements of these kinds, and looks for what is wrong with them.
    pub(crate) fn new(kinds: &'r [FlatKind], links: &[Link], limits: &Limits) -> Self {
        let mut ordered = links.to_vec();
        ordered.sort_by_key(|link| link.from);
        let mut arrivals = links.to_vec();
        arrivals.sort_by_key(|link| link.to);
        let mut resolver = Self {
            kinds,
            links: ordered,
            arrivals,
            problems: Vec::new(),
            steps: limits.tunnel_steps,
            connections: limits.connections,
        };
        resolver.check(links);
        resolver
    }

    /// Returns the connections between real elements, each once, ordered by target and source.
    pub(crate) fn resolve(&mut self) -> Vec<Link> {
        let mut found: Vec<Link> = Vec::new();
        let mut next = 0;
        while next < self.links.len() {
            let from = self.links[next].from;
            let group = next..next + self.outgoing(from).len();
            next = group.end;
            if self.kinds[from.0] != FlatKind::Element {
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

    /// PortErrorKind was found to be wrong.
    pub(crate) fn into_problems(self) -> Vec<PortError> {
        self.problems
    }

    /// The links that leave an output port.
    fn outgoing(&self, from: (usize, usize)) -> &[Link] {
        let start = self.links.partition_point(|link| link.from < from);
        let count = self.links[start..].partition_point(|link| link.from == from);
        &self.links[start..start + count]
    }

    /// The links that enter an input port.
    fn incoming(&self, to: (usize, usize)) -> &[Link] {
        let start = self.arrivals.partition_point(|link| link.to < to);
        let count = self.arrivals[start..].partition_point(|link| link.to == to);
        &self.arrivals[start..start + count]
    }

    /// Where what goes into an input port of a compound, or into its output, comes out; `None` for a real element,
    /// and for an input, which nothing can go into.
    fn passage(&self, to: (usize, usize)) -> Option<(usize, usize)> {
        match self.kinds[to.0] {
            FlatKind::Outer { input, .. } => Some((input, to.1)),
            FlatKind::Output { outer } => Some((outer, to.1)),
            FlatKind::Element | FlatKind::Input { .. } | FlatKind::Failed => None,
        }
    }

    /// The real elements' ports that packets reach which go into `to`.
    fn targets_of(&mut self, to: (usize, usize)) -> Vec<(usize, usize)> {
        let mut found = Vec::new();
        let mut seen = BTreeSet::new();
        let mut open = alloc::vec![to];
        while let Some(to) = open.pop() {
            if self.kinds[to.0] == FlatKind::Element {
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
        if !self.problems.iter().any(|problem| problem.what == PortErrorKind::TooMany) {
            self.problems.push(PortError { element, port: 0, what: PortErrorKind::TooMany });
        }
    }

    /// Looks for ports of compounds and groups that are connected on one side only, and for inputs and outputs that are
    /// used the wrong way round: from each link in turn as far as its ends lead, as Click does, so that what is wrong
    /// is told in the same order.
    fn check(&mut self, links: &[Link]) {
        let mut seen = BTreeSet::new();
        let mut open = Vec::new();
        for link in links {
            if self.kinds[link.from.0] == FlatKind::Element && self.kinds[link.to.0] == FlatKind::Element {
                continue;
            }
            for (end, output) in [(link.from, true), (link.to, false)] {
                open.push(end);
                while let Some(end) = open.pop() {
                    self.check_end(end, output, &mut seen, &mut open);
                }
            }
        }
    }

    /// Checks one end of a link, an output or an input, and adds the ends that it leads to, the first last.
    fn check_end(
        &mut self,
        (element, port): (usize, usize),
        output: bool,
        seen: &mut BTreeSet<(usize, usize, bool)>,
        open: &mut Vec<(usize, usize)>,
    ) {
        // The other side of the passage, and what is wrong when nothing is connected there.
        let (beyond, owner, unconnected) = match (self.kinds[element], output) {
            (FlatKind::Outer { input, .. }, false) => (input, element, PortErrorKind::NoInput),
            (FlatKind::Input { outer }, true) => (outer, outer, PortErrorKind::UnusedInput),
            (FlatKind::Output { outer }, false) => (outer, outer, PortErrorKind::UnusedOutput),
            (FlatKind::Outer { output, .. }, true) => (output, element, PortErrorKind::NoOutput),
            (FlatKind::Input { .. }, false) => {
                return self.problems.push(PortError { element, port, what: PortErrorKind::UsedAsInput });
            }
            (FlatKind::Output { .. }, true) => {
                return self.problems.push(PortError { element, port, what: PortErrorKind::UsedAsOutput });
            }
            (FlatKind::Element | FlatKind::Failed, _) => return,
        };
        if !seen.insert((element, port, output)) {
            return;
        }
        let before = open.len();
        if output {
            open.extend(self.incoming((beyond, port)).iter().rev().map(|link| link.from));
        } else {
            open.extend(self.outgoing((beyond, port)).iter().rev().map(|link| link.to));
        }
        if open.len() == before {
            self.problems.push(PortError { element: owner, port, what: unconnected });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class::SourceSpan;

    /// Element 0 is a compound with input 1 and output 2; from 3 on there are real elements.
    fn kinds() -> Vec<FlatKind> {
        let compound = [
            FlatKind::Outer { input: 1, output: 2 },
            FlatKind::Input { outer: 0 },
            FlatKind::Output { outer: 0 },
        ];
        compound.into_iter().chain([FlatKind::Element; 4]).collect()
    }

    type Outcome = (Vec<(usize, usize)>, Vec<(usize, PortErrorKind)>);

    fn resolve(links: &[(usize, usize)]) -> Outcome {
        let link = |&(from, to): &(usize, usize)| Link {
            from: (from, 0),
            to: (to, 0),
            place: SourceSpan::default(),
        };
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
        check(&[(3, 0)], &[], &[(0, PortErrorKind::NoInput)]);
        check(&[(1, 4)], &[], &[(0, PortErrorKind::UnusedInput)]);
        check(&[(0, 4)], &[], &[(0, PortErrorKind::NoOutput)]);
        check(&[(4, 2)], &[], &[(0, PortErrorKind::UnusedOutput)]);
        check(&[(2, 1)], &[], &[(2, PortErrorKind::UsedAsOutput), (1, PortErrorKind::UsedAsInput)]);
        // Its output goes back to its input: nothing ever comes out, and following it ends.
        check(&[(3, 0), (1, 2), (0, 0)], &[], &[]);
    }
}
