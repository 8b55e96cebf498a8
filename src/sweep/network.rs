//! The lines of a network: a dimension each, innermost first; what holds in all of them; what a row of a zip sets there.

use super::foreign::one_line_each;
use super::inputs::REST;
use super::key::{self, DIM_KEYS, DIM_NAMES_FROM, Slot};
use super::walk::{Frame, Line, Walker, base_and_over, leaf_slot};
use crate::input::diagnostic::Diagnostic;
use crate::input::tree::{Node, Value};
use crate::system::MAX_DIMS;
use crate::units::narrow;

impl Walker {
    /// The lines of a network, innermost first.
    pub(super) fn network(&mut self, lines: &[Line], frame: &mut Frame) {
        const NAMES: &[&str] = &["topology", "npus_count", "bandwidth", "latency", "block", "size", "hop_latency"];
        let per_dimension = |line: &&Line| NAMES.contains(&line.0.as_str());
        if let Some((name, place, nodes)) = lines.iter().find(per_dimension) {
            let help = one_line_each(lines);
            let what = if matches!(nodes[0].value, Value::List(_)) {
                format!("`{name}` is a list with one value a dimension, and a list is an axis here")
            } else {
                format!("`{name}` stands in the network itself, and belongs in one of its dimensions")
            };
            self.unread.push("cluster.network".to_owned());
            self.complain(Diagnostic::error(what).at(*place).help(help));
            return;
        }
        if let Some((name, place, _)) = lines.iter().find(|line| line.0 == super::outside::ASTRA_SIM) {
            self.unread.push("cluster.network".to_owned());
            let message = format!("`{name}` stands beside another base of this network");
            self.complain(Diagnostic::error(message).at(*place).help("remove one of the two"));
            return;
        }
        if lines.len() > MAX_DIMS {
            let place = lines[MAX_DIMS].1;
            self.complain(
                Diagnostic::error(format!("a network has at most {MAX_DIMS} dimensions"))
                    .at(place)
                    .help("join dimensions"),
            );
            return;
        }
        if self.in_row && self.networks == 1 && lines.iter().all(|line| self.dims.contains(&line.0)) {
            self.row_of_network(lines, frame);
            return;
        }
        self.networks += 1;
        self.shapes.push(Vec::new());
        self.dims = lines.iter().map(|line| line.0.clone()).collect();
        for (k, (name, place, nodes)) in lines.iter().enumerate() {
            let number = self.intern(name);
            frame.settings.push((narrow((DIM_NAMES_FROM + k) as u64), number, *place));
            let (base, over) = base_and_over(nodes);
            let path = format!("cluster.network.{k}");
            let (mut line, since) = (Frame::default(), self.written.len());
            self.section(&path, base, &over, &mut line, None);
            if !self.is_unread(&path) {
                self.note_lacking((key::DIMS_FROM + k * DIM_KEYS.len(), DIM_KEYS), (name, *place), &line, since);
            }
            self.unread.retain(|unread| *unread != path);
            self.note_blocks(k, &line);
            frame.settings.append(&mut line.settings);
            frame.axes.append(&mut line.axes);
        }
        let is_size = |slot: Slot| (0..MAX_DIMS).any(|k| slot as usize == key::dim_slot(k, key::DimId::Size));
        let mut rests = frame.settings.iter().filter(|setting| setting.1 == REST && is_size(setting.0));
        if let Some(&(_, _, place)) = rests.nth(1) {
            self.complain(
                Diagnostic::error("a network has one `rest`").at(place).help("write the size of the other dimension"),
            );
        }
    }

    /// Keys of dimensions of the sweep's only network, set by a row of a zip.
    fn row_of_network(&mut self, lines: &[Line], frame: &mut Frame) {
        for (name, _, nodes) in lines {
            let Some(k) = self.dims.iter().position(|dim| dim == name) else { continue };
            let (base, over) = base_and_over(nodes);
            self.section(&format!("cluster.network.{k}"), base, &over, frame, None);
        }
    }

    /// `each_dimension`: a key in all lines.
    pub(super) fn each_dimension(&mut self, node: &Node, frame: &mut Frame) {
        let Value::Map(entries) = &node.value else {
            self.complain(
                Diagnostic::error(format!("`each_dimension` takes a mapping, not {}", node.kind()))
                    .at(node.place)
                    .help("write `each_dimension: {hop_latency: 500 ns}`"),
            );
            return;
        };
        for entry in entries {
            let path = format!("cluster.network.{}.{}", key::EACH, entry.key);
            match leaf_slot(&path, self) {
                Some((slot, key)) if !matches!(key.name(), "block" | "size") => {
                    self.leaf(&format!("each_dimension.{}", entry.key), slot, key, &entry.node, frame);
                }
                _ => self.unknown(&format!("cluster.network.{}", key::EACH), &entry.key, entry.place, &entry.node),
            }
        }
    }
}
