//! Every rule finds the smallest history that breaks it, and none finds anything in a history that
//! only looks as if.

mod bad_mail;
mod bad_rest;
mod gone;
mod good;
mod world;
