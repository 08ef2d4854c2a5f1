//! Plots in panels: curves, points, bars and heat maps over axes with ticks, which scale with what is drawn.

use egui::Color32;
use egui_plot::{Bar, BarChart, Heatmap, Legend, Line, Plot, PlotPoints, PlotUi, Points};

/// What is drawn in a plot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    /// A curve; numbers that are not finite interrupt it.
    Line,
    Scatter,
    /// Bars of this width around their places.
    Bars(f64),
    /// Rows of so many numbers.
    Heatmap(usize),
}

/// A series of numbers: places and values in turn, or the values of a heat map.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    pub(crate) kind: Kind,
    pub(crate) name: String,
    pub(crate) numbers: Vec<f64>,
}

/// A plot.
#[derive(Clone, Debug)]
pub(crate) struct Chart {
    pub(crate) label: String,
    /// The labels of the axes.
    pub(crate) axes: [String; 2],
    /// Width and height in points; zero for all of the panel's width.
    pub(crate) size: [f32; 2],
    pub(crate) series: Vec<Series>,
}

const COLORS: [(u8, u8, u8); 8] = [
    (78, 121, 167),
    (242, 142, 43),
    (89, 161, 79),
    (225, 87, 89),
    (118, 183, 178),
    (237, 201, 72),
    (176, 122, 161),
    (255, 157, 167),
];

/// The colours of heat maps, from the smallest number to the greatest.
const HEAT: [[f64; 3]; 5] = [
    [68.0, 1.0, 84.0],
    [59.0, 82.0, 139.0],
    [33.0, 145.0, 140.0],
    [94.0, 201.0, 98.0],
    [253.0, 231.0, 37.0],
];

pub(crate) fn show(ui: &mut egui::Ui, chart: &Chart) {
    let [width, height] = chart.size;
    let [x, y] = &chart.axes;
    ui.label(&chart.label);
    let mut plot = Plot::new(&chart.label).height(height).allow_scroll(false);
    if width > 0.0 {
        plot = plot.width(width);
    }
    if !x.is_empty() {
        plot = plot.x_axis_label(x);
    }
    if !y.is_empty() {
        plot = plot.y_axis_label(y);
    }
    if chart.series.iter().any(|own| !own.name.is_empty()) {
        plot = plot.legend(Legend::default());
    }
    plot.show(ui, |plot| {
        for (own, &(r, g, b)) in chart.series.iter().zip(COLORS.iter().cycle()) {
            one(plot, own, Color32::from_rgb(r, g, b));
        }
    });
}

fn one(plot: &mut PlotUi<'_>, own: &Series, color: Color32) {
    let points = || own.numbers.chunks_exact(2).map(|pair| [pair[0], pair[1]]);
    let is_finite = |point: &[f64; 2]| point.iter().all(|n| n.is_finite());
    let there = || points().filter(is_finite);
    match own.kind {
        Kind::Line => {
            let all: Vec<[f64; 2]> = points().collect();
            for part in all.split(|point| !is_finite(point)) {
                plot.line(Line::new(&own.name, part.to_vec()).color(color));
            }
        }
        Kind::Scatter => {
            let points: PlotPoints<'_> = there().collect();
            plot.points(Points::new(&own.name, points).color(color).radius(2.5));
        }
        Kind::Bars(width) => {
            let bars = there().map(|[at, height]| Bar::new(at, height).width(width));
            plot.bar_chart(BarChart::new(&own.name, bars.collect()).color(color));
        }
        Kind::Heatmap(columns) => {
            let values = own.numbers.clone();
            let finite = || own.numbers.iter().copied().filter(|n| n.is_finite());
            let least = finite().fold(f64::INFINITY, f64::min);
            let most = finite().fold(f64::NEG_INFINITY, f64::max);
            let range = (most - least).max(f64::MIN_POSITIVE);
            let map = Heatmap::new(values, columns).name(&own.name);
            let map = map.show_labels(false);
            plot.heatmap(map.custom_mapping(Box::new(move |n| heat((n - least) / range))));
        }
    }
}

/// The colour of a number from 0 to 1; of others none.
fn heat(part: f64) -> Color32 {
    if !(0.0..=1.0).contains(&part) {
        return Color32::TRANSPARENT;
    }
    let at = part * (HEAT.len() - 1) as f64;
    let k = (at as usize).min(HEAT.len() - 2);
    let mixed = |c: usize| (HEAT[k][c] + (HEAT[k + 1][c] - HEAT[k][c]) * (at - k as f64)) as u8;
    Color32::from_rgb(mixed(0), mixed(1), mixed(2))
}
