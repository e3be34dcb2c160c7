//! Input specifications: how a rewriter handles packets of unknown flows.

use element::prelude::*;
use element::text;

use super::mapper::Mapper;
use super::pattern::{Target, parse_ports};

/// How packets of unknown flows that arrive on an input are handled.
pub(crate) struct Input {
    /// The specification as it was written.
    pub(crate) text: String,
    pub(crate) kind: InputKind,
}
pub(crate) enum InputKind {
    /// `drop`.
    Drop,
    /// `pass OUTPUT`: packets go there unchanged and create no flow.
    Pass(u16),
    /// `keep FOUTPUT ROUTPUT`: packets create flows that change nothing.
    Keep([u16; 2]),
    /// `pattern ... FOUTPUT ROUTPUT`.
    Pattern(Target),
    /// `ELEMENT`: a mapper chooses the pattern. It is resolved when all elements exist.
    Mapper(String, Option<Rc<Mapper>>),
}

impl Input {
    /// Parses the specification of an input; `outputs` is the element's number of outputs.
    pub(crate) fn parse(line: &str, outputs: usize, setup: &Setup) -> Result<Input, String> {
        let words = text::words(line);
        // A quoted string of several words can't be a keyword.
        let is_word = |(word, _): &(&String, &[String])| text::words(&text::unquote(word)).len() == 1;
        let (word, rest) = words.split_first().filter(is_word).ok_or("empty argument")?;
        let exists = |ports: [u16; 2]| match ports.iter().all(|port| usize::from(*port) < outputs) {
            true => Ok(ports),
            false => Err("output port out of range"),
        };
        let kind = match word.as_str() {
            "pass" | "passthrough" | "nochange" => {
                let port = match rest {
                    [] => Some(0),
                    [port] => i32::from_argument(port, setup).ok(),
                    _ => None,
                };
                let port = port.ok_or("syntax error, expected ‘nochange [OUTPUT]’")?;
                let port = u16::try_from(port).ok().filter(|port| usize::from(*port) < outputs);
                InputKind::Pass(port.ok_or("output port out of range")?)
            }
            "keep" => InputKind::Keep(exists(parse_ports(rest, setup)?)?),
            "drop" | "discard" if rest.is_empty() => InputKind::Drop,
            "drop" | "discard" => return Err(format!("syntax error, expected ‘{word}’")),
            "pattern" | "xpattern" => {
                let target = Target::parse(rest, setup)?;
                exists(target.outputs)?;
                InputKind::Pattern(target)
            }
            name if rest.is_empty() && text::is_identifier(name) => InputKind::Mapper(name.into(), None),
            _ => return Err("unknown specification".into()),
        };
        Ok(Input { text: words.join(" "), kind })
    }

    /// Resolves the mapper, if the specification names one.
    pub(crate) fn connect(&mut self, cx: &Context) -> Result<(), &'static str> {
        let InputKind::Mapper(name, mapper) = &mut self.kind else { return Ok(()) };
        if cx.runtime().find(cx.element(), name).is_none() {
            return Err("unknown specification");
        }
        *mapper = Some(cx.import::<Mapper>(name).ok_or("element is not an IPMapper")?);
        Ok(())
    }

    /// The problems of the mapper's patterns for a rewriter with this number of outputs.
    pub(crate) fn problems(&self, outputs: usize) -> Vec<String> {
        match &self.kind {
            InputKind::Mapper(_, Some(mapper)) => mapper.check(outputs).collect(),
            _ => Vec::new(),
        }
    }

    /// The text that the `patterns` handler shows.
    pub(crate) fn describe(&self) -> String {
        match &self.kind {
            InputKind::Drop => "<drop>".into(),
            InputKind::Pass(_) => "<nochange>".into(),
            InputKind::Keep(_) => "<keep>".into(),
            InputKind::Pattern(target) => target.pattern.to_string(),
            InputKind::Mapper(..) => "<mapper>".into(),
        }
    }
}
