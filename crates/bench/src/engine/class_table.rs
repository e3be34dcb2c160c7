//! The configurations that measure element classes one by one, and the classes that can't be measured so.

/// A line for each form of a class, and one for each reason why classes are not measured.
const TABLE: &str = include_str!("classes.txt");

/// The number of packets that `FromDump` sends in a turn in these configurations: FastClick's default.
pub(crate) const BURST: u32 = 32;

/// A configuration that measures a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassConfiguration {
    /// The class.
    pub class: &'static str,
    /// The class, and the form of its arguments if there are several.
    pub name: &'static str,
    /// The text, with an element `source` and a Counter `out`.
    pub text: String,
}

/// All configurations, in the order of the reference.
pub fn class_configurations() -> impl Iterator<Item = ClassConfiguration> {
    let lines = TABLE.lines().filter(|line| !line.starts_with(['#', '!']));
    lines.filter_map(|line| line.split_once(": ")).map(|(name, body)| {
        let (first, more) = body.split_once("; ").unwrap_or((body, ""));
        ClassConfiguration {
            class: name.split_once(" (").map_or(name, |(class, _)| class),
            name,
            text: format!(
                "source :: InfiniteSource() -> {first} -> out :: Counter -> Discard;\n{more}{}\n",
                if more.is_empty() { "" } else { ";" }
            ),
        }
    })
}

/// The classes that are not measured, each with the reason.
pub fn unmeasured_classes() -> impl Iterator<Item = (&'static str, &'static str)> {
    let reasons = TABLE.lines().filter_map(|line| line.strip_prefix("! ")?.split_once(": "));
    reasons.flat_map(|(reason, classes)| classes.split_whitespace().map(move |class| (class, reason)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_line_is_a_configuration_or_a_reason() {
        let lines = TABLE.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        let reasons = lines.clone().filter(|line| line.starts_with('!')).count();
        let names: BTreeSet<_> = class_configurations().map(|configuration| configuration.name).collect();
        assert_eq!(names.len() + reasons, lines.count(), "names are unique");
        let measured: BTreeSet<_> = class_configurations().map(|configuration| configuration.class).collect();
        for (class, reason) in unmeasured_classes() {
            assert!(!measured.contains(class), "{class} is measured: {reason}");
        }
    }

    #[test]
    fn further_statements_follow_the_chain() {
        let configuration = class_configurations().find(|found| found.name == "Tee (4 ways)").expect("Tee");
        assert_eq!(configuration.class, "Tee");
        assert_eq!(
            configuration.text,
            "source :: InfiniteSource() -> t :: Tee(4) -> out :: Counter -> Discard;\n\
             t [1] -> Discard; t [2] -> Discard; t [3] -> Discard;\n"
        );
    }
}
