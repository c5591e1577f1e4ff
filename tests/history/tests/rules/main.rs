//! Every rule finds the smallest history that breaks it, and none finds a violation in a correct
//! history that resembles a violation.

mod bad_mail;
mod bad_rest;
mod gone;
mod good;
mod restored;
mod schedules;
mod streams;
mod world;
