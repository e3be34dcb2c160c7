//! Prepares a configuration for a measurement: makes it read a capture, and sets the number of rules and routes.
//!
//! A configuration in `examples/` generates its own packets with the element `source`. Here everything after `source`
//! becomes the compound element `Chain`, which FromDump feeds. Elements are identified by name: `source`, `out` (a
//! Counter at the end of the main path), `rules` (an IPFilter) and `routes` (a route table). All programs get the same
//! text, apart from the argument that makes this one use the compact form of its rules. A Classifier `sessions` gets a
//! pattern and an output for each session of the traffic.

use std::path::Path;

use random::Random;

use super::frame::FIRST_SESSION;
use super::rules::{Route, Rule, routes_text, rules, rules_text};
use super::traffic::Capture;

/// The number of flows for which one public address of a rewriter has enough ports, rounded down.
const FLOWS_PER_ADDRESS: usize = 60_000;

/// The number of copies in series of a chain that is too short to be measured alone.
pub(crate) const REPETITIONS: u32 = 9;

/// The parameters of a measurement. `None` keeps the value in the configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Number of filter rules; the last one allows everything.
    pub rules: Option<u32>,
    /// Number of routes; one is the default route.
    pub routes: Option<u32>,
    /// Number of PPPoE sessions that a Classifier `sessions` tells apart.
    pub sessions: Option<u16>,
    /// Whether this program uses the compact form of the rules.
    pub compact: bool,
}

/// A configuration without its `source`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chain {
    /// The compound element's body.
    body: String,
    /// Whether it has an output, so that another chain can follow.
    pub(crate) has_output: bool,
    /// How many packets its source sends in a turn, if that is given.
    pub(crate) burst: Option<u32>,
    /// The rules that were drawn for it.
    pub(super) rules: Vec<Rule>,
    /// Its routes, if they have the simple form that this program can read.
    pub(super) routes: Vec<Route>,
}

/// The error for a configuration without an element `source`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoSource;

impl std::fmt::Display for NoSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(
            "no element `source` to replace by the traffic: write `source :: InfiniteSource(...) -> ...`",
        )
    }
}

impl std::error::Error for NoSource {}

impl Chain {
    /// Prepares the chain of a configuration. Rules and routes are drawn from the flows of the capture.
    pub(crate) fn new(text: &str, load: &Load, capture: &Capture, seed: u64) -> Result<Self, NoSource> {
        let mut body = without_comments(text);
        let mut variables = take_definitions(&mut body);
        if let Some((_, public)) = variables.iter_mut().find(|(name, _)| name == "$PUBLIC") {
            let last = 1 + capture.flows.len().div_ceil(FLOWS_PER_ADDRESS);
            *public = format!("198.51.0.1-198.51.{}.{}", last / 250, 1 + last % 250);
        }
        // Longest names first, because one name may be a prefix of another.
        variables.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
        for (name, value) in &variables {
            body = body.replace(name, value);
        }
        if let Some(count) = load.sessions {
            set_sessions(&mut body, count);
        }
        let mut random = Random::new(seed);
        let mut drawn = Vec::new();
        if let Some((count, (start, end))) = load.rules.zip(arguments_of(&body, "rules")) {
            drawn = rules(count, &capture.flows, &mut random);
            body.replace_range(start..end, &rules_text(&drawn));
        }
        if let Some((count, (start, end))) = load.routes.zip(arguments_of(&body, "routes")) {
            let last_word = |route: &str| route.split_whitespace().last()?.parse::<u32>().ok();
            let outputs = body[start..end].split(',').filter_map(last_word).max().unwrap_or_default() + 1;
            body.replace_range(start..end, &routes_text(count, outputs, &capture.flows, &mut random));
        }
        let routes =
            arguments_of(&body, "routes").and_then(|(start, end)| Route::parse_all(&body[start..end]));
        let declaration = body.find("source ::").ok_or(NoSource)?;
        let (_, end) = arguments_of(&body, "source").ok_or(NoSource)?;
        body.replace_range(declaration..=end, "input");
        let out = body.find("out :: Counter").map(|at| at + "out :: Counter".len());
        let end = out.and_then(|at| {
            let rest = body[at..].trim_start().strip_prefix("->")?.trim_start();
            rest.starts_with("Discard").then(|| body.len() - rest.len())
        });
        if let Some(at) = end {
            body.replace_range(at..at + "Discard".len(), "output");
        }
        Ok(Self {
            body,
            has_output: end.is_some(),
            burst: None,
            rules: drawn,
            routes: routes.unwrap_or_default(),
        })
    }

    /// The chain for this program: the same, or with the argument that makes its rules use the compact form.
    pub(crate) fn for_own(&self, load: &Load) -> Self {
        let mut own = self.clone();
        if load.compact
            && let Some((_, end)) = arguments_of(&own.body, "rules")
        {
            own.body.insert_str(end, ", MEMORY 0");
        }
        own
    }

    /// The text that sends the packets of a capture through `copies` of the chain in series.
    pub(crate) fn text(&self, capture: &Capture, copies: u32) -> String {
        let more = (1..copies).map(|_| " -> Chain").collect::<String>();
        let end = if self.has_output { " -> Discard" } else { "" };
        let source = source(&capture.path, self.burst);
        format!("elementclass Chain {{\n{}\n}}\n{source} -> chain :: Chain{more}{end};\n", self.body)
    }
}

/// The text that reads the packets of a capture and drops them.
pub(crate) fn baseline(capture: &Capture, burst: Option<u32>) -> String {
    format!("{} -> Discard;\n", source(&capture.path, burst))
}

fn source(path: &Path, burst: Option<u32>) -> String {
    let path = path.display().to_string().replace('\\', "\\\\").replace('"', "\\\"");
    let burst = burst.map_or_else(String::new, |burst| format!(", BURST {burst}"));
    format!("FromDump(\"{path}\", STOP true{burst})")
}

/// Whether a configuration has an element with this name and with arguments.
pub fn has_element(text: &str, name: &str) -> bool {
    arguments_of(&without_comments(text), name).is_some()
}

/// The number of arguments of an element whose arguments contain no commas, such as rules.
pub(super) fn argument_count(text: &str, name: &str) -> Option<u32> {
    let text = without_comments(text);
    let (start, end) = arguments_of(&text, name)?;
    u32::try_from(text[start..end].split(',').count()).ok()
}

/// The range of the arguments of the element `name` in the text: between its parentheses.
fn arguments_of(text: &str, name: &str) -> Option<(usize, usize)> {
    let declaration = text.find(&format!("{name} :: "))?;
    let start = declaration + text[declaration..].find('(')? + 1;
    Some((start, start + closing(&text[start..])?))
}

/// The offset of the parenthesis that closes one opened before the text.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 1usize;
    text.char_indices().find_map(|(at, character)| {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        (depth == 0).then_some(at)
    })
}

/// Makes the Classifier `sessions` tell `count` PPPoE sessions apart. All lead to where the first one leads. Leaves a text of
/// another form as it is.
fn set_sessions(body: &mut String, count: u16) {
    let statement = |body: &str, output: usize| {
        let at = body.find(&format!("sessions [{output}] ->"))?;
        Some(at..at + body[at..].find(';')? + 1)
    };
    let Some((start, end)) = arguments_of(body, "sessions") else { return };
    let known = body[start..end].split(',').count() - 1;
    let (Some(first), Some(unknown)) = (statement(body, 0), statement(body, known)) else { return };
    let (first, unknown) = (body[first].to_string(), body[unknown].to_string());
    let others = (1..known).filter_map(|output| Some(body[statement(body, output)?].to_string()));
    for text in others.collect::<Vec<_>>() {
        *body = body.replace(&text, "");
    }
    *body = body.replace(&unknown, &unknown.replace(&format!("[{known}]"), &format!("[{count}]")));
    let outputs = (0..count).map(|output| first.replace("[0]", &format!("[{output}]")) + "\n");
    *body = body.replace(&first, &outputs.collect::<String>());
    let patterns = (0..count).map(|number| format!("16/{:04x}, ", FIRST_SESSION + number));
    let Some((start, end)) = arguments_of(body, "sessions") else { return };
    body.replace_range(start..end, &(patterns.collect::<String>() + "-"));
}

/// The text without line comments.
fn without_comments(text: &str) -> String {
    text.lines()
        .map(|line| line.split_once("//").map_or(line, |(code, _)| code))
        .fold(String::new(), |text, line| text + line + "\n")
}

/// Removes `define(...)` from the text; returns the names with their values.
fn take_definitions(text: &mut String) -> Vec<(String, String)> {
    let mut variables = Vec::new();
    while let Some(at) = text.find("define(") {
        let start = at + "define(".len();
        let Some(end) = closing(&text[start..]) else { break };
        let pairs = text[start..start + end].split(',');
        variables.extend(pairs.filter_map(|pair| {
            let (name, value) = pair.trim().split_once(char::is_whitespace)?;
            Some((name.to_string(), value.trim().to_string()))
        }));
        let rest = text[start + end + 1..].trim_start().trim_start_matches(';').len();
        text.replace_range(at..text.len() - rest, "");
    }
    variables
}

#[cfg(test)]
mod tests {
    use super::super::EXAMPLES;
    use super::super::flow::generate_flows;
    use super::*;

    fn capture(frames: u64, flows: usize) -> Capture {
        let flows = generate_flows(flows, &mut Random::new(1));
        Capture { path: "/tmp/a b.pcap".into(), frames, flows }
    }

    #[test]
    fn every_example_is_a_chain() {
        for example in EXAMPLES {
            let chain = Chain::new(example.text, &Load::default(), &capture(10, 5), 1).expect(example.name);
            assert!(chain.has_output, "{}", example.name);
            for text in ["InfiniteSource", "define", "$LENGTH", "//"] {
                assert!(!chain.body.contains(text), "{}: {text}", example.name);
            }
            assert!(chain.body.contains("input\n    ->"), "{}", chain.body);
        }
    }

    #[test]
    fn a_load_replaces_rules_and_routes() {
        let text = "define($A 1, $AB 2);\nsource :: InfiniteSource(LIMIT 3) -> rules :: IPFilter(deny (x or y), allow all)\n\
                    -> routes :: R(1.0.0.0/8 1.1.1.1 2, 0/0 0) -> X($AB, $A) -> out :: Counter -> Discard;";
        let load = Load { rules: Some(3), routes: Some(4), compact: true, ..Load::default() };
        let capture = capture(10, 100);
        let chain = Chain::new(text, &load, &capture, 1).expect("a chain");
        assert!(chain.body.starts_with("\ninput -> rules :: IPFilter("), "{}", chain.body);
        assert!(
            chain.body.contains("allow all)") && chain.body.contains("X(2, 1) -> out :: Counter -> output;")
        );
        assert_eq!(argument_count(&chain.body, "rules"), Some(3));
        assert_eq!(argument_count(&chain.body, "routes"), Some(4));
        let own = chain.for_own(&load);
        assert_eq!(own.body, chain.body.replace("allow all)", "allow all, MEMORY 0)"));
        assert_eq!(chain.for_own(&Load { compact: false, ..load }), chain);
        let twice = chain.text(&capture, 2);
        let end = "FromDump(\"/tmp/a b.pcap\", STOP true) -> chain :: Chain -> Chain -> Discard;\n";
        assert!(twice.ends_with(end), "{twice}");
        assert_eq!(Chain::new("Idle -> Discard;", &load, &capture, 1), Err(NoSource));
    }

    #[test]
    fn a_broadband_server_knows_all_sessions() {
        let bras = EXAMPLES.iter().find(|example| example.name == "bras").expect("bras");
        let load = Load { sessions: Some(500), ..Load::default() };
        let chain = Chain::new(bras.text, &load, &capture(10, 5), 1).expect("a chain");
        assert_eq!(argument_count(&chain.body, "sessions"), Some(501));
        assert!(chain.body.contains("16/0017, 16/0018,") && chain.body.contains(", 16/020a, -)"));
        for (text, count) in [
            ("sessions [0] -> subscribers;", 1),
            ("sessions [499] -> subscribers;", 1),
            ("-> subscribers;", 500),
            ("sessions [500] -> unknown ::", 1),
        ] {
            assert_eq!(chain.body.matches(text).count(), count, "{text}");
        }
    }

    #[test]
    fn a_rewriter_gets_addresses_for_all_flows() {
        let nat = EXAMPLES.iter().find(|example| example.name == "nat").expect("nat");
        let chain = Chain::new(nat.text, &Load::default(), &capture(10, 60_001), 1).expect("a chain");
        assert!(chain.body.contains("pattern 198.51.0.1-198.51.0.4 1024-65535"), "{}", chain.body);
    }
}
