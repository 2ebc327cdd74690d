use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::super::tests::awkward;
use super::*;

fn picture(rows: &Rows, choices: &Choices, width: u16, height: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, rows, choices)).unwrap();
    let buffer = terminal.backend().buffer();
    let line = |row| (0..width).map(|column| buffer[(column, row)].symbol()).collect::<String>();
    (0..height).map(line).collect()
}

#[test]
fn every_size_has_a_picture() {
    let rows = awkward();
    for width in [0, 1, 2, 5, 19, 20, 21, 40, 80, 81, 132, 400] {
        for height in [0, 1, 2, 3, 4, 5, 6, 10, 11, 24, 25, 60, 200] {
            for rows in [&rows, &Rows::default()] {
                picture(rows, &Choices::default(), width, height);
                picture(rows, &Choices { typing: Some(String::new()), ..Choices::default() }, width, height);
            }
        }
    }
}

#[test]
fn a_small_terminal_has_the_device_and_what_it_owes() {
    let mut rows = awkward();
    rows.devices.truncate(1);
    let picture = picture(&rows, &Choices::default(), 20, 5);
    assert!(picture[0].starts_with("127.0.0.1:2049"), "{picture:#?}");
    assert!(picture[1].starts_with("device") && picture[1].contains("owes"), "{picture:#?}");
    assert!(picture[2].starts_with("sda1") && picture[2].contains("250 ms"), "{picture:#?}");
    assert!(picture[4].starts_with("q quit  s sort"), "{picture:#?}");
}

#[test]
fn an_ordinary_terminal_has_all_tables_and_says_what_is_left_out() {
    let picture = picture(&awkward(), &Choices::default(), 100, 24);
    for begins in ["device ", "client ", "file ", " longest"] {
        assert!(picture.iter().any(|line| line.starts_with(begins)), "{begins}: {picture:#?}");
    }
    assert!(picture.iter().any(|line| line.starts_with("+") && line.contains(" more")), "{picture:#?}");
}

#[test]
fn rooms_are_given_once_and_wholly() {
    for height in 0..100 {
        for wanted in [[2, 2, 2, 2], [5, 1, 40, 200], [60, 3, 3, 3], [1, 1, 1, 1]] {
            let heights = heights(height, &wanted);
            assert!(heights.iter().sum::<usize>() <= height, "{height} {wanted:?} {heights:?}");
            assert!(
                heights[1..].iter().all(|its_height| *its_height == 0 || *its_height >= TABLE_MIN),
                "{height} {wanted:?} {heights:?}"
            );
            assert_eq!(heights[0], wanted[0].max(TABLE_MIN).min(height));
        }
    }
    assert_eq!(heights(22, &[3, 3, 40, 200]), [3, 3, 8, 8]);
}

#[test]
fn the_last_line_says_what_was_chosen() {
    let rows = Rows { lost_events: 1_204, ..Rows::default() };
    let line = |choices: &Choices| picture(&rows, choices, 120, 5).pop().unwrap();
    let mut choices = Choices { held: true, letters: "sda".into(), ..Choices::default() };
    let said = line(&choices);
    assert!(said.starts_with("held  /sda  q quit  s sort (writes)") && said.contains("1,204 events missed"), "{said}");
    choices.typing = Some(String::new());
    assert!(line(&choices).starts_with("/sda_ "), "{}", line(&choices));
}

#[test]
fn the_key_for_help_shows_every_key_and_a_busy_row_has_a_colour() {
    let mut rows = awkward();
    rows.devices.truncate(1);
    rows.devices[0].owed_ns = rows.devices[0].budget_ns;
    let explains = Choices { explains: true, ..Choices::default() };
    let shown = picture(&rows, &explains, 100, 24);
    for key in ["q ", "s ", "p ", "/ ", "? ", "yellow ", "owes "] {
        assert!(shown.iter().any(|line| line.starts_with(key)), "{key}: {shown:#?}");
    }
    let mut terminal = Terminal::new(TestBackend::new(100, 24)).unwrap();
    terminal.draw(|frame| draw(frame, &rows, &Choices::default())).unwrap();
    let colour = |row: u16| terminal.backend().buffer()[(0, row)].fg;
    assert_eq!((colour(0), colour(2)), (Color::Reset, Color::Yellow));
}
