//! The contents of doc comments.

use syn::{Attribute, Expr, ExprLit, Lit, Meta};

/// The parts of an element's documentation.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Documentation {
    pub(crate) summary: String,
    pub(crate) description: String,
    pub(crate) example: String,
    pub(crate) expect: String,
}

/// The text of a list of doc comments.
pub(crate) fn text(attributes: &[Attribute]) -> String {
    let mut lines = Vec::new();
    for attribute in attributes {
        if let Meta::NameValue(pair) = &attribute.meta
            && pair.path.is_ident("doc")
            && let Expr::Lit(ExprLit { lit: Lit::Str(line), .. }) = &pair.value
        {
            let line = line.value();
            lines.push(line.strip_prefix(' ').unwrap_or(&line).to_string());
        }
    }
    lines.join("\n")
}

/// The first paragraph, on one line.
pub(crate) fn summary(text: &str) -> String {
    text.trim().split("\n\n").next().unwrap_or("").lines().map(str::trim).collect::<Vec<_>>().join(" ")
}

/// Splits an element's documentation into its parts.
pub(crate) fn parse(text: &str) -> Documentation {
    let mut parts = Documentation::default();
    let mut block: Option<String> = None;
    let mut prose = String::new();
    for line in text.lines() {
        match (&block, line.trim().strip_prefix("```")) {
            (None, Some(kind @ ("click" | "expect"))) => block = Some(kind.to_string()),
            (Some(_), Some("")) => block = None,
            (Some(kind), _) => {
                let part = if kind == "click" { &mut parts.example } else { &mut parts.expect };
                part.push_str(line);
                part.push('\n');
            }
            (None, _) => {
                prose.push_str(line);
                prose.push('\n');
            }
        }
    }
    parts.summary = summary(&prose);
    parts.description = prose.trim().split_once("\n\n").map_or("", |(_, rest)| rest.trim()).to_string();
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_blocks_out_of_the_prose() {
        let parts = parse(
            "Sends\npackets.\n\nMore.\n```click\nIdle -> Discard;\n```\n```expect\nd.count = 0\n```\nEnd.",
        );
        assert_eq!(parts.summary, "Sends packets.");
        assert_eq!(parts.description, "More.\nEnd.");
        assert_eq!(parts.example, "Idle -> Discard;\n");
        assert_eq!(parts.expect, "d.count = 0\n");
    }
}
