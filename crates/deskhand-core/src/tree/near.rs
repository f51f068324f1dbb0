//! Names that are nearly the wanted one: for an answer to a query that finds nothing.

use crate::desktop::{Node, State};
use crate::tree::Query;

/// Longer names are compared by their beginning.
const COMPARED: usize = 60;
/// A word that is shorter is in too many names.
const SHORTEST_WORD: usize = 3;
/// So many names are compared at most: more than a window shows.
const MOST_NAMES: usize = 5000;

/// Places of the elements whose names are nearest to the query's, nearest first.
pub fn nearest(query: &Query, nodes: &[Node], limit: usize) -> Vec<u32> {
    let Some(wanted) = query.name.as_deref().map(beginning).filter(|wanted| !wanted.is_empty()) else {
        return Vec::new();
    };
    let wanted_words = words(&wanted);
    let named = (0u32..).zip(nodes).filter(|(_, node)| !node.name.trim().is_empty()).take(MOST_NAMES);
    let mut near: Vec<(usize, u32)> = named
        .filter_map(|(place, node)| {
            let name = beginning(&node.name);
            let distance = distance(&wanted, &name);
            let shares_a_word = words(&name).iter().any(|word| wanted_words.contains(word));
            let length = wanted.chars().count();
            // A word in common is as good as some slips; what is not on the screen comes last.
            let hidden = if node.states.has(State::Showing) { 0 } else { length };
            (distance <= length / 3 || shares_a_word).then_some((distance + hidden, place))
        })
        .collect();
    near.sort_unstable();
    let mut seen: Vec<(&str, &str)> = Vec::new();
    near.retain(|(_, place)| {
        let node = &nodes[*place as usize];
        let is_new = seen.len() < limit && !seen.contains(&(&node.role, &node.name));
        if is_new {
            seen.push((&node.role, &node.name));
        }
        is_new
    });
    near.into_iter().map(|(_, place)| place).collect()
}

fn beginning(name: &str) -> String {
    name.trim().to_lowercase().chars().take(COMPARED).collect()
}

fn words(name: &str) -> Vec<&str> {
    let words = name.split(|c: char| !c.is_alphanumeric());
    words.filter(|word| word.chars().count() >= SHORTEST_WORD).collect()
}

/// How many characters have to be put in, left out, replaced or exchanged with their neighbour to make one of the other.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (line, from) in a.iter().enumerate() {
        let mut row = vec![line + 1];
        for (column, to) in b.iter().enumerate() {
            let replaced = last[column] + usize::from(from != to);
            let mut least = replaced.min(last[column + 1] + 1).min(row[column] + 1);
            let exchanged = line > 0 && column > 0 && a[line - 1] == *to && b[column - 1] == *from;
            if exchanged {
                least = least.min(before[column - 1] + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_count_characters() {
        assert_eq!(distance("save", "save"), 0);
        assert_eq!(distance("sav", "save"), 1);
        assert_eq!(distance("größe", "grösse"), 2);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("fiel", "file"), 1);
    }
}
