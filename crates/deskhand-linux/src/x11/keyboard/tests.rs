//! Layouts and texts in, strokes out.

use deskhand_core::desktop::PortError;

use super::layout::{Key, KeyType, LOCK, Layout, Stroke, Strokes};
use super::plan::{Batch, Plan};

const SHIFT: u8 = 0x01;
const MOD5: u8 = 0x80;
const ALL: u8 = 0xff;

/// Types as every XKB map has them: one level, two, alphabetic, four.
fn types() -> Vec<KeyType> {
    let four = vec![(SHIFT, 1), (MOD5, 2), (SHIFT | MOD5, 3)];
    vec![
        KeyType::default(),
        KeyType { sensitive: SHIFT, levels: vec![(SHIFT, 1)] },
        KeyType { sensitive: SHIFT | LOCK, levels: vec![(SHIFT, 1), (LOCK, 1)] },
        KeyType { sensitive: SHIFT | MOD5, levels: four },
    ]
}

fn key(kind: u8, groups: &[&[u32]]) -> Key {
    Key {
        group_info: u8::try_from(groups.len()).unwrap(),
        types: [kind; 4],
        width: u8::try_from(groups.first().map_or(0, |levels| levels.len())).unwrap(),
        symbols: groups.concat(),
        sets: 0,
    }
}

/// Keys 38 (a, with a Cyrillic second group), 39 (2, at, and `²` on the third level), 40 (Return), 41 to 43 (unused),
/// 44 (Shift).
fn layout() -> Layout {
    let mut shift = key(0, &[&[0xffe1]]);
    shift.sets = SHIFT;
    Layout {
        first_keycode: 38,
        keys: vec![
            key(2, &[&[0x61, 0x41], &[0x6c6, 0x6e6]]),
            key(3, &[&[0x32, 0x40, 0xb2, 0]]),
            key(0, &[&[0xff0d]]),
            Key::default(),
            key(0, &[&[0]]),
            Key::default(),
            shift,
        ],
        types: types(),
    }
}

fn plan(text: &str, group: u8, spares: &[u8]) -> Result<Plan, PortError> {
    Plan::of_text(text, &Strokes::new(&layout(), ALL), group, spares)
}

fn strokes(text: &str, group: u8) -> Vec<(u8, Option<u8>, u8)> {
    let plan = plan(text, group, &[]).unwrap();
    let all = plan.batches.iter().flat_map(|batch| &batch.strokes).flatten();
    all.map(|stroke| (stroke.keycode, stroke.group, stroke.modifiers)).collect()
}

#[test]
fn characters_come_from_the_level_that_has_them() {
    assert_eq!(
        strokes("aA2@²\n", 0),
        [
            (38, Some(0), 0),
            (38, Some(0), SHIFT),
            (39, Some(0), 0),
            (39, Some(0), SHIFT),
            (39, Some(0), MOD5),
            (40, Some(0), 0)
        ]
    );
}

#[test]
fn the_group_changes_only_where_it_must() {
    // A key with one group gives the same in both, so the second group stays in effect for it.
    assert_eq!(strokes("ф2", 1), [(38, Some(1), 0), (39, Some(1), 0)]);
    assert_eq!(
        strokes("фa2Ф", 1),
        [(38, Some(1), 0), (38, Some(0), 0), (39, Some(0), 0), (38, Some(1), SHIFT)]
    );
}

#[test]
fn modifiers_that_cannot_be_held_rule_a_level_out() {
    let available = Strokes::new(&layout(), SHIFT);
    assert!(available.find(0xb2, 0).is_none());
    assert!(available.find(0x40, 0).is_some());
}

#[test]
fn what_locks_must_not_be_on_is_told() {
    let found = Strokes::new(&layout(), ALL).find(0x61, 0).unwrap();
    assert_eq!(found, Stroke { keycode: 38, group: Some(0), modifiers: 0, sensitive: SHIFT | LOCK });
}

#[test]
fn missing_characters_share_spare_keys_and_begin_a_new_batch_when_these_run_out() {
    assert_eq!(layout().unused().collect::<Vec<_>>(), [41, 42, 43]);
    let spare = |keycode| Some(Stroke { keycode, group: None, modifiers: 0, sensitive: 0 });
    let plan = plan("漢字漢aé", 0, &[41, 43]).unwrap();
    let typed = Strokes::new(&layout(), ALL).find(0x61, 0);
    let expected = vec![
        Batch {
            spares: vec![(41, 0x0100_6f22), (43, 0x0100_5b57)],
            strokes: vec![spare(41), spare(43), spare(41), typed],
        },
        Batch { spares: vec![(41, 0xe9)], strokes: vec![spare(41)] },
    ];
    assert_eq!(plan.batches, expected);
    assert_eq!(plan.len(), 5);
}

#[test]
fn line_ends_of_two_characters_are_one_key() {
    let plan = plan("a\r\n\r", 0, &[]).unwrap();
    let keys: Vec<Option<u8>> =
        plan.batches[0].strokes.iter().map(|stroke| stroke.map(|stroke| stroke.keycode)).collect();
    assert_eq!(keys, [Some(38), None, Some(40), Some(40)]);
}

#[test]
fn the_first_character_that_cannot_be_typed_is_named() {
    for (text, named) in [("a\u{7}é", "U+0007"), ("aé\u{7}", "'é'")] {
        let error = plan(text, 0, &[]).unwrap_err().to_string();
        assert!(error.contains(named), "{error}");
    }
}

#[test]
fn groups_that_a_key_has_not_wrap_clamp_or_redirect() {
    let with = |info: u8| {
        let mut layout = layout();
        layout.keys[1].group_info = info;
        layout.keys[1].symbols = vec![0x32, 0x40, 0xb2, 0, 0x33, 0, 0, 0];
        layout.keys[0] = key(0, &[&[1], &[1], &[1]]);
        Strokes::new(&layout, ALL).find(0x33, 2).map(|stroke| stroke.group)
    };
    // Two groups; group 2 in effect: wrapped to the first, clamped to the second, redirected to the second.
    assert_eq!(with(0x02), Some(Some(1)));
    assert_eq!(with(0x42), Some(Some(2)));
    assert_eq!(with(0x92), Some(Some(2)));
}
