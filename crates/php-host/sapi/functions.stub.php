<?php

/** The functions that the host adds; functions.c is written after this by hand. */

/** Completes the answer; the script goes on. False when it was complete already. */
function fastcgi_finish_request(): bool {}

/** The same under our own name. */
function outboard_finish_request(): bool {}

/** @return array<string, string> */
function apache_request_headers(): array {}

/** @return array<string, string> */
function getallheaders(): array {}

/** @return array<string, string> */
function apache_response_headers(): array {}
