//! Layered layout of a directed graph, from top to bottom.
//!
//! The steps are Sugiyama's:
//! 1. reverse the edges that close cycles;
//! 2. assign each node a layer below all its predecessors;
//! 3. add a waypoint in each layer that an edge passes;
//! 4. order each layer to reduce crossings;
//! 5. place nodes as vertically aligned as their widths allow;
//! 6. straighten long edges as far as their neighbours allow.

/// A box to place.
#[derive(Clone, Debug, Default)]
pub(super) struct Node {
    pub(super) width: f64,
    pub(super) height: f64,
    /// The positions of its inputs on the upper edge, and of its outputs on the lower edge.
    pub(super) inputs: Vec<f64>,
    pub(super) outputs: Vec<f64>,
    /// Fixes the node at the top or the bottom, whatever its connections.
    pub(super) end: Option<End>,
}

/// The top or the bottom of the picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Top,
    Bottom,
}

/// A connection: node and port at both ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    pub(super) from: (usize, usize),
    pub(super) to: (usize, usize),
}

/// The positions of nodes and edges.
#[derive(Debug, Default)]
pub(super) struct Layout {
    pub(super) width: f64,
    pub(super) height: f64,
    /// The upper left corners of the nodes.
    pub(super) corners: Vec<(f64, f64)>,
    /// The points of each edge: its ends, and the upper and lower end of each straight segment in between.
    pub(super) lines: Vec<Vec<(f64, f64)>>,
}

/// Gaps between neighbours in a layer, and between layers.
const NODE_GAP: f64 = 24.0;
const LAYER_GAP: f64 = 40.0;
/// Number of rounds of ordering and of placement.
const ORDER_ROUNDS: usize = 12;
/// Above this many nodes and waypoints, fewer rounds are used.
const LARGE_GRAPH: usize = 3_000;

struct Item {
    node: Node,
    layer: usize,
    /// The horizontal middle, once placed.
    x: f64,
}

/// A segment of an edge between neighbouring layers.
struct Segment {
    up: (usize, f64),
    down: (usize, f64),
}

/// Computes the layout of a graph.
pub(super) fn compute_layout(nodes: &[Node], edges: &[Edge]) -> Layout {
    let reversed = reversed(nodes, edges);
    let layers = layers(nodes, edges, &reversed);
    let mut items: Vec<Item> = nodes
        .iter()
        .zip(&layers)
        .map(|(node, layer)| Item { node: node.clone(), layer: *layer, x: 0.0 })
        .collect();
    let mut segments = Vec::new();
    let mut chains = Vec::new();
    for (edge, reversed) in edges.iter().zip(&reversed) {
        chains.push(add_waypoints(edge, *reversed, &mut items, &mut segments));
    }
    let count = items.iter().map(|item| item.layer + 1).max().unwrap_or(0);
    let mut rows: Vec<Vec<usize>> = vec![Vec::new(); count];
    for (index, item) in items.iter().enumerate() {
        if let Some(row) = rows.get_mut(item.layer) {
            row.push(index);
        }
    }
    let rounds = if items.len() > LARGE_GRAPH { 2 } else { ORDER_ROUNDS };
    order(&mut rows, &mut items, &segments, rounds);
    align(&rows, &mut items, &segments, rounds);
    straighten(&rows, &mut items, &segments, &chains);
    build_layout(nodes, edges, &reversed, &rows, &items, &chains)
}

/// Which edges lead back to a predecessor.
fn reversed(nodes: &[Node], edges: &[Edge]) -> Vec<bool> {
    let mut leaving = vec![Vec::new(); nodes.len()];
    let mut has_input = vec![false; nodes.len()];
    for (index, edge) in edges.iter().enumerate() {
        leaving[edge.from.0].push(index);
        has_input[edge.to.0] = true;
    }
    // 0: not seen, 1: on the current path, 2: done.
    let mut state = vec![0u8; nodes.len()];
    let mut reversed = vec![false; edges.len()];
    let starts = (0..nodes.len()).filter(|&node| !has_input[node]);
    let starts: Vec<usize> = starts.chain(0..nodes.len()).collect();
    for start in starts {
        if state[start] != 0 {
            continue;
        }
        state[start] = 1;
        let mut stack = vec![(start, 0)];
        while let Some((node, next)) = stack.last_mut() {
            let Some(&edge) = leaving[*node].get(*next) else {
                state[*node] = 2;
                stack.pop();
                continue;
            };
            *next += 1;
            let target = edges[edge].to.0;
            match state[target] {
                0 => {
                    state[target] = 1;
                    stack.push((target, 0));
                }
                1 => reversed[edge] = true,
                _ => {}
            }
        }
    }
    reversed
}

/// The layer of each node.
fn layers(nodes: &[Node], edges: &[Edge], reversed: &[bool]) -> Vec<usize> {
    let ends = |edge: &Edge, reversed: bool| {
        if reversed { (edge.to.0, edge.from.0) } else { (edge.from.0, edge.to.0) }
    };
    let mut below = vec![Vec::new(); nodes.len()];
    let mut open_predecessors = vec![0usize; nodes.len()];
    for (edge, reversed) in edges.iter().zip(reversed) {
        let (up, down) = ends(edge, *reversed);
        if up != down {
            below[up].push(down);
            open_predecessors[down] += 1;
        }
    }
    let mut layers = vec![0usize; nodes.len()];
    let mut ready: Vec<usize> = (0..nodes.len()).filter(|&node| open_predecessors[node] == 0).collect();
    let mut sequence = Vec::new();
    while let Some(node) = ready.pop() {
        sequence.push(node);
        for &next in &below[node] {
            layers[next] = layers[next].max(layers[node] + 1);
            open_predecessors[next] -= 1;
            if open_predecessors[next] == 0 {
                ready.push(next);
            }
        }
    }
    // A node without predecessors is placed directly above its successors.
    let mut has_above = vec![false; nodes.len()];
    below.iter().flatten().for_each(|&down| has_above[down] = true);
    for &node in sequence.iter().rev() {
        let nearest = below[node].iter().map(|&down| layers[down]).min();
        if let Some(nearest) = nearest.filter(|_| !has_above[node]) {
            layers[node] = nearest.saturating_sub(1);
        }
    }
    let has_top = nodes.iter().any(|node| node.end == Some(End::Top));
    let last = layers.iter().copied().max().unwrap_or(0);
    for (layer, node) in layers.iter_mut().zip(nodes) {
        *layer = match node.end {
            Some(End::Top) => 0,
            Some(End::Bottom) => last + usize::from(has_top) + 1,
            None => *layer + usize::from(has_top && !nodes.is_empty()),
        };
    }
    // Remove empty layers.
    let mut used: Vec<usize> = layers.clone();
    sorting::sort(&mut used);
    used.dedup();
    layers.iter().map(|layer| used.binary_search(layer).unwrap_or(0)).collect()
}

/// Adds waypoints in the layers that an edge passes; returns them from top to bottom.
fn add_waypoints(
    edge: &Edge,
    reversed: bool,
    items: &mut Vec<Item>,
    segments: &mut Vec<Segment>,
) -> Vec<usize> {
    let middle = |item: &Item, ports: &[f64], port: usize| {
        ports.get(port).copied().unwrap_or(item.node.width / 2.0) - item.node.width / 2.0
    };
    let (from, to) = (edge.from.0, edge.to.0);
    let out = middle(&items[from], &items[from].node.outputs, edge.from.1);
    let into = middle(&items[to], &items[to].node.inputs, edge.to.1);
    // An edge that leads back also has a waypoint beside each of its ends.
    let (first, last) = if reversed {
        (items[to].layer, items[from].layer)
    } else {
        (items[from].layer + 1, items[to].layer.saturating_sub(1))
    };
    let mut waypoints = Vec::new();
    let mut before = if reversed { None } else { Some((from, out)) };
    for layer in first..=last.max(first) {
        if !reversed && layer > last {
            break;
        }
        items.push(Item { node: Node { width: 4.0, ..Node::default() }, layer, x: 0.0 });
        let here = items.len() - 1;
        if let Some(up) = before {
            segments.push(Segment { up, down: (here, 0.0) });
        }
        before = Some((here, 0.0));
        waypoints.push(here);
    }
    if let Some(up) = before.filter(|_| !reversed) {
        segments.push(Segment { up, down: (to, into) });
    }
    waypoints
}

/// Orders each layer by the positions of its neighbours, alternating up and down, and keeps the order with the fewest
/// crossings.
fn order(rows: &mut Vec<Vec<usize>>, items: &mut [Item], segments: &[Segment], rounds: usize) {
    let mut best = rows.clone();
    let mut fewest = usize::MAX;
    for round in 0..rounds * 2 {
        let downward = round % 2 == 0;
        spread(rows, items);
        let crossings = crossings(rows, items, segments);
        if crossings < fewest {
            fewest = crossings;
            best.clone_from(rows);
        }
        if fewest == 0 {
            break;
        }
        let indices: Vec<usize> =
            if downward { (0..rows.len()).collect() } else { (0..rows.len()).rev().collect() };
        let neighbours = neighbours(items.len(), segments, downward, !downward);
        for index in indices {
            let mut keyed: Vec<(f64, usize)> = rows[index]
                .iter()
                .map(|&item| (mean(&neighbours[item], items).unwrap_or(items[item].x), item))
                .collect();
            sorting::sort_by(&mut keyed, |one, other| one.0.total_cmp(&other.0));
            rows[index] = keyed.into_iter().map(|(_, item)| item).collect();
            spread_row(&rows[index], items);
        }
    }
    *rows = best;
    spread(rows, items);
}

/// For each item: its own offset, the neighbour and the neighbour's offset.
type Neighbours = Vec<Vec<(f64, usize, f64)>>;

fn neighbours(count: usize, segments: &[Segment], above: bool, below: bool) -> Neighbours {
    let mut neighbours = vec![Vec::new(); count];
    for segment in segments {
        if above {
            neighbours[segment.down.0].push((segment.down.1, segment.up.0, segment.up.1));
        }
        if below {
            neighbours[segment.up.0].push((segment.up.1, segment.down.0, segment.down.1));
        }
    }
    neighbours
}

/// The mean position that the neighbours suggest for an item.
fn mean(neighbours: &[(f64, usize, f64)], items: &[Item]) -> Option<f64> {
    let sum: f64 = neighbours.iter().map(|(own, other, offset)| items[*other].x + offset - own).sum();
    (!neighbours.is_empty()).then(|| sum / neighbours.len() as f64)
}

fn spread(rows: &[Vec<usize>], items: &mut [Item]) {
    for row in rows {
        spread_row(row, items);
    }
}

/// Places the items of a layer side by side, centred at 0.
fn spread_row(row: &[usize], items: &mut [Item]) {
    let width: f64 = row.iter().map(|&item| items[item].node.width + NODE_GAP).sum();
    let mut x = -width / 2.0;
    for &item in row {
        items[item].x = x + (items[item].node.width + NODE_GAP) / 2.0;
        x += items[item].node.width + NODE_GAP;
    }
}

fn crossings(rows: &[Vec<usize>], items: &[Item], segments: &[Segment]) -> usize {
    let mut by_layer = vec![Vec::new(); rows.len()];
    for segment in segments {
        let ends = (items[segment.up.0].x + segment.up.1, items[segment.down.0].x + segment.down.1);
        by_layer[items[segment.up.0].layer].push(ends);
    }
    let crossed = |one: &(f64, f64), other: &(f64, f64)| (one.0 - other.0) * (one.1 - other.1) < 0.0;
    let each = |ends: &Vec<(f64, f64)>| -> usize {
        let pairs = ends.iter().enumerate();
        pairs.map(|(index, one)| ends[..index].iter().filter(|other| crossed(one, other)).count()).sum()
    };
    by_layer.iter().map(each).sum()
}

/// Moves items towards the positions that their neighbours suggest, as far as order and distances allow.
fn align(rows: &[Vec<usize>], items: &mut [Item], segments: &[Segment], rounds: usize) {
    for round in 0..rounds * 3 {
        // In the last rounds both sides count.
        let last = round >= rounds * 2;
        let downward = round % 2 == 0;
        let neighbours = neighbours(items.len(), segments, downward || last, !downward || last);
        let indices: Vec<usize> =
            if downward { (0..rows.len()).collect() } else { (0..rows.len()).rev().collect() };
        for index in indices {
            align_row(&rows[index], items, &neighbours);
        }
    }
}

/// The least-squares positions that preserve order and distances: neighbours that would overlap are merged into blocks,
/// which move as one.
fn align_row(row: &[usize], items: &mut [Item], neighbours: &Neighbours) {
    // For each block: the sum of weighted positions, the weight, the number of items.
    let mut blocks: Vec<(f64, f64, usize)> = Vec::new();
    let mut offsets = Vec::new();
    let mut offset = 0.0;
    for (index, &item) in row.iter().enumerate() {
        if let Some(&before) = index.checked_sub(1).and_then(|before| row.get(before)) {
            offset += (items[before].node.width + items[item].node.width) / 2.0 + NODE_GAP;
        }
        offsets.push(offset);
        let wish = mean(&neighbours[item], items).unwrap_or(items[item].x) - offset;
        // Waypoints have more weight, so that long edges are straight; items without neighbours have little.
        let weight = match (neighbours[item].is_empty(), items[item].node.height > 0.0) {
            (true, _) => 0.1,
            (false, true) => 1.0,
            (false, false) => 3.0,
        };
        let mut block = (wish * weight, weight, 1);
        while let Some(last) = blocks.last().filter(|last| last.0 / last.1 > block.0 / block.1) {
            block = (block.0 + last.0, block.1 + last.1, block.2 + last.2);
            blocks.pop();
        }
        blocks.push(block);
    }
    let corners = blocks.iter().flat_map(|block| std::iter::repeat_n(block.0 / block.1, block.2));
    for ((&item, offset), index) in row.iter().zip(offsets).zip(corners) {
        items[item].x = index + offset;
    }
}

/// Gives the waypoints of each edge as few positions as their neighbours in the layers allow: that of the upper end as far down
/// as possible, then that of the lower end, and between them as few others as possible. Longer edges come first.
fn straighten(rows: &[Vec<usize>], items: &mut [Item], segments: &[Segment], chains: &[Vec<usize>]) {
    /// A straightened edge makes room for others.
    const ROUNDS: usize = 3;
    let mut place = vec![0; items.len()];
    rows.iter().flatten().for_each(|item| place[*item] = 0);
    for row in rows {
        row.iter().enumerate().for_each(|(index, item)| place[*item] = index);
    }
    let (mut above, mut below) = (vec![None; items.len()], vec![None; items.len()]);
    for segment in segments {
        above[segment.down.0] = Some(segment.up);
        below[segment.up.0] = Some(segment.down);
    }
    let mut longest: Vec<&Vec<usize>> = chains.iter().filter(|chain| !chain.is_empty()).collect();
    sorting::sort_by_key(&mut longest, |chain| std::cmp::Reverse(chain.len()));
    for _ in 0..ROUNDS {
        for chain in &longest {
            let room: Vec<(f64, f64)> =
                chain.iter().map(|item| room(&rows[items[*item].layer], place[*item], items)).collect();
            let end = |end: Option<(usize, f64)>| end.map(|(item, offset)| items[item].x + offset);
            let upper = end(chain.first().and_then(|first| above[*first]));
            let lower = end(chain.last().and_then(|last| below[*last]));
            let wishes: Vec<f64> = chain.iter().map(|item| items[*item].x).collect();
            for (item, x) in chain.iter().zip(positions(&room, upper, lower, &wishes)) {
                items[*item].x = x;
            }
        }
    }
}

/// Where an item may be without touching its neighbours in a layer.
fn room(row: &[usize], place: usize, items: &[Item]) -> (f64, f64) {
    let distance = |other: usize| (items[other].node.width + items[row[place]].node.width) / 2.0 + NODE_GAP;
    let left =
        place.checked_sub(1).and_then(|before| row.get(before)).map(|&item| items[item].x + distance(item));
    let right = row.get(place + 1).map(|&item| items[item].x - distance(item));
    (left.unwrap_or(f64::NEG_INFINITY), right.unwrap_or(f64::INFINITY))
}

/// Positions in these ranges with few changes from one to the next, and from the upper and to the lower end. Where the ends do
/// not decide, they are near the wishes.
fn positions(room: &[(f64, f64)], upper: Option<f64>, lower: Option<f64>, wishes: &[f64]) -> Vec<f64> {
    let fits = |x: f64, room: &(f64, f64)| room.0 <= x && x <= room.1;
    let mut positions = wishes.to_vec();
    let top = upper.map_or(0, |x| room.iter().take_while(|room| fits(x, room)).count());
    let bottom = lower.map_or(0, |x| room[top..].iter().rev().take_while(|room| fits(x, room)).count());
    let (from, to) = (top, room.len() - bottom);
    positions[..from].fill(upper.unwrap_or_default());
    positions[to..].fill(lower.unwrap_or_default());
    let mut start = from;
    while start < to {
        let (mut left, mut right) = room[start];
        let mut end = start + 1;
        while end < to && room[end].0.max(left) <= room[end].1.min(right) {
            (left, right) = (left.max(room[end].0), right.min(room[end].1));
            end += 1;
        }
        let mean = wishes[start..end].iter().sum::<f64>() / (end - start) as f64;
        // Rounding may leave no room at all.
        positions[start..end].fill(mean.max(left).min(right.max(left)));
        start = end;
    }
    positions
}

/// Converts middles to corners, and chains of waypoints to lines.
fn build_layout(
    nodes: &[Node],
    edges: &[Edge],
    reversed: &[bool],
    rows: &[Vec<usize>],
    items: &[Item],
    chains: &[Vec<usize>],
) -> Layout {
    let left = items.iter().map(|item| item.x - item.node.width / 2.0).fold(f64::INFINITY, f64::min);
    let right = items.iter().map(|item| item.x + item.node.width / 2.0).fold(f64::NEG_INFINITY, f64::max);
    if items.is_empty() {
        return Layout::default();
    }
    let mut tops = Vec::new();
    let mut y = 0.0;
    for row in rows {
        let height = row.iter().map(|&item| items[item].node.height).fold(0.0, f64::max);
        tops.push((y, height));
        // A layer that contains only points on a compound's border needs less space.
        y += height + if height > 0.0 { LAYER_GAP } else { LAYER_GAP / 3.0 };
    }
    let corner = |index: usize| {
        let item = &items[index];
        let (top, height) = tops[item.layer];
        let down = match item.node.end {
            Some(End::Top) => 0.0,
            Some(End::Bottom) => height - item.node.height,
            None => (height - item.node.height) / 2.0,
        };
        (item.x - item.node.width / 2.0 - left, top + down)
    };
    let corners: Vec<(f64, f64)> = (0..nodes.len()).map(corner).collect();
    let line = |((edge, reversed), waypoints): ((&Edge, &bool), &Vec<usize>)| {
        let port =
            |ports: &[f64], port: usize, node: &Node| ports.get(port).copied().unwrap_or(node.width / 2.0);
        let (from, to) = (&nodes[edge.from.0], &nodes[edge.to.0]);
        let (start, end) = (corners[edge.from.0], corners[edge.to.0]);
        let mut points = vec![(start.0 + port(&from.outputs, edge.from.1, from), start.1 + from.height)];
        let waypoint = |&index: &usize| {
            let (top, height) = tops[items[index].layer];
            let x = items[index].x - left;
            [(x, top), (x, top + height)]
        };
        let mut bends: Vec<(f64, f64)> = waypoints.iter().flat_map(waypoint).collect();
        if *reversed {
            bends.reverse();
        }
        // Inside the layers of its ends a line is straight, so that it does not touch taller neighbours.
        let (upper, lower) = (tops[items[edge.from.0].layer], tops[items[edge.to.0].layer]);
        points.extend(points.first().map(|first| (first.0, upper.0 + upper.1)));
        points.extend(bends);
        let last = (end.0 + port(&to.inputs, edge.to.1, to), end.1);
        points.extend([(last.0, lower.0), last]);
        points
    };
    let lines = edges.iter().zip(reversed).zip(chains).map(line).collect();
    Layout {
        width: right - left,
        height: tops.last().map_or(0.0, |(top, height)| top + height),
        corners,
        lines,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(count: usize, edges: &[(usize, usize)]) -> Layout {
        let node = Node { width: 50.0, height: 20.0, ..Node::default() };
        let nodes = vec![node; count];
        let edges: Vec<Edge> =
            edges.iter().map(|&(from, to)| Edge { from: (from, 0), to: (to, 0) }).collect();
        let layout = compute_layout(&nodes, &edges);
        for (index, one) in layout.corners.iter().enumerate() {
            for other in &layout.corners[..index] {
                let separate = (one.0 - other.0).abs() >= 50.0 || (one.1 - other.1).abs() >= 20.0;
                assert!(separate, "{one:?} and {other:?} overlap");
            }
        }
        layout
    }

    #[test]
    fn a_chain_is_straight() {
        let layout = check(4, &[(0, 1), (1, 2), (2, 3)]);
        assert!(layout.corners.iter().all(|corner| corner.0 == layout.corners[0].0), "{layout:?}");
    }

    #[test]
    fn cycles_and_self_loops_are_laid_out() {
        let layout = check(3, &[(0, 1), (1, 2), (2, 0), (1, 1)]);
        assert_eq!(layout.lines.len(), 4);
        check(0, &[]);
    }

    /// How often a line changes its horizontal position.
    fn bends(layout: &Layout) -> usize {
        let shifts = |line: &Vec<(f64, f64)>| {
            line.windows(2).filter(|points| (points[0].0 - points[1].0).abs() > 0.01).count()
        };
        layout.lines.iter().map(shifts).sum()
    }

    #[test]
    fn long_edges_bend_at_their_ends_only() {
        // Edges that skip four layers, beside chains.
        let chain = |first: usize| (first..first + 5).map(|node| (node, node + 1));
        let edges: Vec<_> = chain(0).chain(chain(6)).chain([(0, 5), (6, 11), (0, 11), (6, 5)]).collect();
        let layout = check(12, &edges);
        for line in &layout.lines[10..] {
            let shifts = line.windows(2).filter(|points| (points[0].0 - points[1].0).abs() > 0.01).count();
            assert!(shifts <= 2, "{line:?}");
        }
        // Random graphs: at most one and a half changes for each edge.
        let mut seed = 7u64;
        let mut next = |below: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as usize % below
        };
        let edges: Vec<(usize, usize)> = (0..20)
            .flat_map(|_| {
                let from = next(39);
                [(from, from + 1), (from, from + 1 + next(39 - from))]
            })
            .collect();
        let layout = check(40, &edges);
        assert!(bends(&layout) <= 60, "{}", bends(&layout));
    }

    #[test]
    fn straightened_positions_keep_to_their_room() {
        let room = [(0.0, 10.0), (5.0, 20.0), (12.0, 30.0), (14.0, 15.0), (-9.0, 9.0)];
        let wishes = [1.0, 6.0, 20.0, 14.5, 0.0];
        let found = positions(&room, Some(7.0), Some(3.0), &wishes);
        assert_eq!(found, [7.0, 7.0, 15.0, 15.0, 3.0]);
        assert_eq!(positions(&room[..2], None, None, &wishes[..2]), [5.0, 5.0]);
        assert_eq!(positions(&room[..2], None, Some(8.0), &wishes[..2]), [8.0, 8.0]);
    }

    #[test]
    fn nodes_do_not_overlap() {
        let edges: Vec<_> = (0..60).map(|edge| (edge * 7 % 30, edge * 11 % 30)).collect();
        check(30, &edges);
    }
}
