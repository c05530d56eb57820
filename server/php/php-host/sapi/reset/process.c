/*
 * State of the whole process: environment, working directory, umask, locale. Called by reset.c.
 */
#include "reset/reset.h"
#include "ext/standard/basic_functions.h"
#include <locale.h>
#include <sys/stat.h>
#include <unistd.h>

extern char **environ;

static char **baseline_environment;
static char baseline_directory[PATH_MAX];
static mode_t baseline_umask;
static char *baseline_locale;

static char **copied_environment(void)
{
	size_t count = 0;
	while (environ[count]) {
		count++;
	}
	char **copy = pemalloc((count + 1) * sizeof(*copy), 1);
	for (size_t i = 0; i < count; i++) {
		copy[i] = pestrdup(environ[i], 1);
	}
	copy[count] = NULL;
	return copy;
}

static void reset_environment(void)
{
	OUTBOARD_ASSERT(baseline_environment);
	/* putenv() records there what it has to undo at the end of the script. */
	zend_hash_clean(&BG(putenv_ht));
	clearenv();
	for (char **variable = baseline_environment; *variable; variable++) {
		putenv(*variable);
	}
	tzset();
}

void outboard_save_process(void)
{
	const char *locale = setlocale(LC_ALL, NULL);
	baseline_environment = copied_environment();
	if (!getcwd(baseline_directory, sizeof(baseline_directory))) {
		baseline_directory[0] = '\0';
	}
	baseline_umask = umask(0);
	umask(baseline_umask);
	baseline_locale = locale ? pestrdup(locale, 1) : NULL;
}

void outboard_reset_process(uint32_t changes)
{
	if (changes & OUTBOARD_ENVIRONMENT) {
		reset_environment();
	}
	if ((changes & OUTBOARD_DIRECTORY) && baseline_directory[0] && chdir(baseline_directory) != 0) {
		php_log_err_with_severity("the worker's working directory no longer exists", LOG_WARNING);
	}
	if (changes & OUTBOARD_UMASK) {
		umask(baseline_umask);
	}
	if ((changes & OUTBOARD_LOCALE) && baseline_locale) {
		setlocale(LC_ALL, baseline_locale);
		zend_update_current_locale();
	}
}
