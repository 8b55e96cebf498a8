//! The Pareto front: the points that no other point beats in every objective.

/// A point of the front.
#[derive(Debug, Clone, PartialEq)]
pub struct Member<T> {
    /// Where the point is: the first of those with equal objectives.
    pub place: T,
    /// Its objectives, turned so that less is better.
    pub costs: Vec<f64>,
    /// How many points have just these objectives.
    pub ties: u64,
}

/// A front that grows point by point and holds only what is on it.
#[derive(Debug, Clone, PartialEq)]
pub struct Front<T> {
    members: Vec<Member<T>>,
}

impl<T> Default for Front<T> {
    fn default() -> Self {
        Self { members: Vec::new() }
    }
}

/// How two points compare.
enum Relation {
    Better,
    Worse,
    Equal,
    Neither,
}

fn relation(a: &[f64], b: &[f64]) -> Relation {
    let less = a.iter().zip(b).any(|(a, b)| a < b);
    let more = a.iter().zip(b).any(|(a, b)| a > b);
    match (less, more) {
        (true, false) => Relation::Better,
        (false, true) => Relation::Worse,
        (false, false) => Relation::Equal,
        (true, true) => Relation::Neither,
    }
}

impl<T: Copy> Front<T> {
    /// Takes a point in, if nothing on the front beats it. A point with an objective that is no number is left out.
    ///
    /// The front does not depend on the order of points, but for which of several equal ones stands for all: the first.
    pub fn insert(&mut self, place: T, costs: &[f64]) {
        if costs.iter().any(|cost| cost.is_nan()) {
            return;
        }
        for k in 0..self.members.len() {
            match relation(costs, &self.members[k].costs) {
                Relation::Worse => {
                    // What beat one point is likely to beat the next.
                    self.members.swap(0, k);
                    return;
                }
                Relation::Equal => {
                    self.members[k].ties += 1;
                    return;
                }
                Relation::Better | Relation::Neither => {}
            }
        }
        self.members.retain(|member| !matches!(relation(costs, &member.costs), Relation::Better));
        self.members.push(Member { place, costs: costs.to_vec(), ties: 1 });
    }

    /// The front, by its first objective, then the next.
    #[must_use]
    pub fn sorted(mut self) -> Vec<Member<T>> {
        self.members.sort_by(|a, b| {
            let orders = a.costs.iter().zip(&b.costs).map(|(a, b)| a.total_cmp(b));
            orders.fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then)
        });
        self.members
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_beaten_point_leaves_and_an_equal_one_is_counted() {
        let mut front = Front::default();
        for (place, costs) in [[3.0, 3.0], [1.0, 4.0], [2.0, 2.0], [2.0, 2.0], [f64::NAN, 0.0]].iter().enumerate() {
            front.insert(place, costs);
        }
        let sorted = front.sorted();
        let members: Vec<_> = sorted.iter().map(|member| (member.place, member.ties)).collect();
        assert_eq!(members, [(1, 1), (2, 2)]);
    }

    proptest! {
        #[test]
        fn the_front_is_what_no_point_beats(points in prop::collection::vec((0_u8..20, 0_u8..20, 0_u8..4), 1..60)) {
            let costs: Vec<[f64; 3]> = points.iter().map(|&(a, b, c)| [f64::from(a), f64::from(b), f64::from(c)]).collect();
            let mut front = Front::default();
            for (place, costs) in costs.iter().enumerate() {
                front.insert(place, costs);
            }
            let beaten = |point: &[f64; 3]| costs.iter().any(|other| matches!(relation(other, point), Relation::Better));
            let mut expected: Vec<_> = costs.iter().filter(|point| !beaten(point)).map(|point| point.to_vec()).collect();
            expected.sort_by(|a, b| a.partial_cmp(b).expect("numbers"));
            expected.dedup();
            let found: Vec<_> = front.sorted().into_iter().map(|member| member.costs).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
