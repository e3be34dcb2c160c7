//! Plots as SVG.

use std::fmt::Write;

/// Outer size, and the area inside the axes.
const WIDTH: f64 = 560.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 82.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 46.0;

/// The scale of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scale {
    /// Linear, from zero.
    Linear,
    /// By powers.
    Logarithmic,
}

/// An axis.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    pub(super) label: &'static str,
    pub(super) scale: Scale,
}

/// A series of points.
#[derive(Clone, Debug)]
pub(super) struct Series {
    pub(super) name: String,
    pub(super) points: Vec<(f64, f64)>,
    /// Whether the series is from a is_paper: drawn grey and dashed.
    pub(super) is_paper: bool,
    /// Whether the points are not joined, because nothing is known between them.
    pub(super) is_scatter: bool,
}

impl Series {
    pub(super) fn ours(name: &str, points: Vec<(f64, f64)>) -> Self {
        Self { name: name.into(), points, is_paper: false, is_scatter: false }
    }

    pub(super) fn paper_points(name: &str, points: Vec<(f64, f64)>) -> Self {
        Self { is_scatter: true, ..Self::paper(name, points) }
    }

    pub(super) fn paper(name: &str, points: Vec<(f64, f64)>) -> Self {
        Self { name: name.into(), points, is_paper: true, is_scatter: false }
    }
}

/// A plot.
#[derive(Clone, Debug)]
pub(super) struct Plot {
    pub(super) x: Axis,
    pub(super) y: Axis,
    /// The labelled values of the x axis.
    pub(super) ticks: Vec<f64>,
    pub(super) series: Vec<Series>,
}

/// Maps values to positions in the image.
struct PixelScale {
    scale: Scale,
    least: f64,
    most: f64,
    from: f64,
    to: f64,
}

impl PixelScale {
    fn position(&self, value: f64) -> f64 {
        let of = |value: f64| match self.scale {
            Scale::Linear => value,
            Scale::Logarithmic => value.max(1e-9).log2(),
        };
        let (least, most) = (of(self.least), of(self.most));
        let share = if most > least { (of(value) - least) / (most - least) } else { 0.5 };
        self.from + share * (self.to - self.from)
    }
}

impl Plot {
    /// The image, with the legend below it.
    pub(super) fn svg(&self) -> String {
        let points = || self.series.iter().flat_map(|series| &series.points);
        let xs = || points().map(|point| point.0).chain(self.ticks.iter().copied());
        let highest = points().map(|point| point.1).fold(0.0, f64::max);
        let lowest = points().map(|point| point.1).fold(f64::INFINITY, f64::min);
        let marks = marks(self.y.scale, lowest, highest);
        let x = PixelScale {
            scale: self.x.scale,
            least: xs().fold(f64::INFINITY, f64::min),
            most: xs().fold(f64::NEG_INFINITY, f64::max),
            from: LEFT + 10.0,
            to: WIDTH - RIGHT - 10.0,
        };
        let y = PixelScale {
            scale: self.y.scale,
            least: marks.first().copied().unwrap_or_default(),
            most: marks.last().copied().unwrap_or(1.0),
            from: HEIGHT - BOTTOM,
            to: TOP,
        };
        let mut out = format!("<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\">");
        // Writing to a string can't fail.
        let _ = self.axes(&mut out, &x, &y, &marks);
        let (mut ours, mut paper) = (0, 0);
        for series in &self.series {
            let number = if series.is_paper { &mut paper } else { &mut ours };
            let class = format!("{}{number}", if series.is_paper { "f" } else { "s" });
            *number += 1;
            let _ = draw(&mut out, series, &class, &x, &y);
        }
        out.push_str("</svg>");
        out.push_str(&self.legend());
        out
    }

    fn axes(&self, out: &mut String, x: &PixelScale, y: &PixelScale, marks: &[f64]) -> std::fmt::Result {
        let (bottom, right) = (HEIGHT - BOTTOM, WIDTH - RIGHT);
        for mark in marks {
            let at = y.position(*mark);
            write!(out, "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{right}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>")?;
            write!(
                out,
                "<text class=\"tick\" x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                LEFT - 6.0,
                at + 4.0,
                figure(*mark)
            )?;
        }
        for tick in &self.ticks {
            write!(
                out,
                "<text class=\"tick\" x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
                x.position(*tick),
                bottom + 16.0,
                figure(*tick)
            )?;
        }
        write!(out, "<line class=\"axis\" x1=\"{LEFT}\" x2=\"{right}\" y1=\"{bottom}\" y2=\"{bottom}\"/>")?;
        let middle = f64::midpoint(LEFT, right);
        write!(
            out,
            "<text class=\"label\" x=\"{middle}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            HEIGHT - 8.0,
            self.x.label
        )?;
        let middle = f64::midpoint(TOP, bottom);
        write!(
            out,
            "<text class=\"label\" transform=\"translate(14 {middle}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
            self.y.label
        )
    }

    fn legend(&self) -> String {
        let (mut ours, mut paper) = (0, 0);
        let mut out = String::from("<p class=\"legend\">");
        for series in &self.series {
            let number = if series.is_paper { &mut paper } else { &mut ours };
            let class = format!("{}{number}", if series.is_paper { "f" } else { "s" });
            *number += 1;
            let _ = write!(out, "<span class=\"{class}\">{}</span>", series.name);
        }
        out + "</p>"
    }
}

fn draw(out: &mut String, series: &Series, class: &str, x: &PixelScale, y: &PixelScale) -> std::fmt::Result {
    let points: Vec<(f64, f64)> =
        series.points.iter().map(|point| (x.position(point.0), y.position(point.1))).collect();
    if !series.is_scatter {
        let line: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        write!(out, "<polyline class=\"line {class}\" points=\"{}\"/>", line.join(" "))?;
    }
    // With many points, markers would overlap.
    if points.len() <= 12 {
        for ((x, y), (_, value)) in points.iter().zip(&series.points) {
            let title = figure(*value);
            write!(
                out,
                "<circle class=\"mark {class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\"><title>{title}</title></circle>"
            )?;
        }
    }
    Ok(())
}

/// Values of the grid lines: round numbers from at most the lowest point to at least the highest.
fn marks(scale: Scale, lowest: f64, highest: f64) -> Vec<f64> {
    match scale {
        Scale::Linear => {
            let rough = (highest / 5.0).max(1e-9);
            let power = 10f64.powf(rough.log10().floor());
            let step = [1.0, 2.0, 2.5, 5.0, 10.0].map(|factor| factor * power);
            let step = step.into_iter().find(|step| *step >= rough).unwrap_or(power);
            let count = (highest / step).ceil().max(1.0) as usize;
            (0..=count).map(|number| number as f64 * step).collect()
        }
        Scale::Logarithmic => {
            let first = lowest.max(1e-6).log10().floor() as i32;
            let last = (highest.max(1e-6).log10().ceil() as i32).max(first + 1);
            (first..=last).map(|power| 10f64.powi(power)).collect()
        }
    }
}

/// A number in human-readable form.
pub(super) fn figure(number: f64) -> String {
    let text = match number.abs() {
        0.0 => return "0".into(),
        1000.0.. => {
            let whole = number.round() as u64;
            let (head, tail) = (whole / 1000, whole % 1000);
            return format!(
                "{},{tail:03}",
                if head >= 1000 { figure(head as f64) } else { head.to_string() }
            );
        }
        100.0.. => return format!("{number:.0}"),
        10.0.. => format!("{number:.1}"),
        1.0.. => format!("{number:.2}"),
        _ => format!("{number:.3}"),
    };
    text.trim_end_matches('0').trim_end_matches('.').into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axis_marks_are_round_and_enclose_the_points() {
        let cases = [
            (Scale::Linear, 0.1, 9.4, vec![0.0, 2.0, 4.0, 6.0, 8.0, 10.0]),
            (Scale::Linear, 3.0, 0.0, vec![0.0, 1e-9]),
            (Scale::Logarithmic, 0.4, 900.0, vec![0.1, 1.0, 10.0, 100.0, 1000.0]),
            (Scale::Logarithmic, 10.0, 10.0, vec![10.0, 100.0]),
        ];
        for (scale, lowest, highest, expected) in cases {
            let found = marks(scale, lowest, highest);
            assert_eq!(found.len(), expected.len(), "{scale:?} {lowest} {highest}: {found:?}");
            for (found, expected) in found.iter().zip(expected) {
                assert!((found - expected).abs() < 1e-9, "{scale:?} {lowest} {highest}: {found}");
            }
        }
    }

    #[test]
    fn numbers_are_short() {
        for (number, expected) in [
            (0.0, "0"),
            (0.0125, "0.013"),
            (1.5, "1.5"),
            (20.0, "20"),
            (239.4, "239"),
            (65_536.0, "65,536"),
            (1e6, "1,000,000"),
        ] {
            assert_eq!(figure(number), expected);
        }
    }

    #[test]
    fn points_are_inside_the_plot() {
        let axis = |scale| Axis { label: "x", scale };
        for scale in [Scale::Linear, Scale::Logarithmic] {
            let plot = Plot {
                x: axis(scale),
                y: axis(scale),
                ticks: vec![1.0, 64.0],
                series: vec![
                    Series::ours("a", vec![(1.0, 0.5), (64.0, 900.0)]),
                    Series::paper("b", vec![(8.0, 30.0)]),
                ],
            };
            let svg = plot.svg();
            let points = svg.split("<circle").skip(1).map(|circle| {
                let number = |name: &str| -> f64 {
                    let from = circle.split(name).nth(1).unwrap();
                    from.split('"').nth(1).unwrap().parse().unwrap()
                };
                (number("cx="), number("cy="))
            });
            let points: Vec<_> = points.collect();
            assert_eq!(points.len(), 3);
            for (x, y) in points {
                assert!(
                    (LEFT..=WIDTH - RIGHT).contains(&x) && (TOP..=HEIGHT - BOTTOM).contains(&y),
                    "{x} {y}"
                );
            }
        }
    }
}
