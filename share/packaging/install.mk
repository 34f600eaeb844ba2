# Installing and uninstalling.

# A file in the installation lists the directories that were missing, and uninstalling removes no further directory. A
# package (DESTDIR) has directories of its own.
directories = $(LIBDIR)/directories
make_directories = $(Q)umask 022; $(if $(DESTDIR),mkdir -p $(sort $(dir $(addprefix $(DESTDIR),$(1)))),\
	made=$$(LC_ALL=C mkdir -pv $(LIBDIR) $(sort $(dir $(1)))) && \
	printf '%s\n' "$$made" | sed -n "s/.* '\(.*\)'$$/\1/p" >>$(directories))
remove_directories = $(Q)$(if $(DESTDIR),cd $(DESTDIR) && rmdir -p $(patsubst /%,%,$(sort $(dir $(installed)))),\
	made=$$(sort -ru $(directories)); rm -f $(directories); \
	rmdir $(LIBDIR) $(addprefix $(DOCDIR)/,reference internals evaluation) $(DOCDIR) $(PYTHONDIR) \
		$(DATADIR)/nvtaskset $$made) 2>/dev/null || true

# Whether we may write there, before anything is built or written. A package's DESTDIR is not checked.
may-install:
	$(Q)$(if $(DESTDIR),,for directory in $(sort $(dir $(installed))); do \
		while [ ! -e "$$directory" ]; do directory=$$(dirname "$$directory"); done; \
		[ -w "$$directory" ] || { echo "make install: $$directory: you may not write there;" \
			"use 'sudo make install', or 'make install PREFIX=\$$HOME/.local'" >&2; exit 1; }; done)
$(installs): | may-install

# Built by the owner of the build directory: `sudo make install` leaves no file of root's there.
as_owner = $(shell place='$(abspath $(BUILD))'; while [ ! -e "$$place" ]; do place=$$(dirname "$$place"); done; \
	[ "$$(id -u)" != 0 ] || [ "$$(stat -c %u "$$place")" = 0 ] || { \
	set -- setpriv $$(stat -c '--reuid=%u --regid=%g' "$$place") --clear-groups; \
	"$$@" test -w "$$place" 2>/dev/null && echo "$$@"; })
build-install:
	$(Q)$(as_owner) $(MAKE) --no-print-directory $(BUILD)/man/nvtaskset.3 \
		$(if $(filter run-install,$(MAKECMDGOALS)),run-all,$(api) $(api_archive) $(smctrl) $(smctrl_archive))
$(addprefix run-,$(installs)): build-install

# The library is replaced atomically: after nvtaskset system enable, programs open the library at any time. The link
# beside the library leads to the machine's driver, by the name that a driver upgrade keeps. A package (DESTDIR) has no
# link: nvtaskset makes a link for each user at run time.
run-install:
	$(call make_directories,$(installed_command))
	install -D -m 755 $(command) $(DESTDIR)$(BINDIR)/nvtaskset
	install -D -m 755 $(shim) $(DESTDIR)$(LIBDIR)/.libcuda.so.1
	install -m 755 $(front) $(DESTDIR)$(LIBDIR)/.libcuda.so.01
	mv -f $(DESTDIR)$(LIBDIR)/.libcuda.so.1 $(DESTDIR)$(LIBDIR)/libcuda.so.1
	mv -f $(DESTDIR)$(LIBDIR)/.libcuda.so.01 $(DESTDIR)$(LIBDIR)/libcuda.so.01
	ln -sf libcuda.so.1 $(DESTDIR)$(LIBDIR)/libcuda.so
	install -D -m 755 $(attach) $(DESTDIR)$(LIBDIR)/libnvtaskset-attach.so
	install -D -m 755 $(audit) $(DESTDIR)$(LIBDIR)/libnvtaskset-audit.so
	install -m 755 $(alias) $(way) $(DESTDIR)$(LIBDIR)/
	install -D -m 644 tools/man/nvtaskset.1 $(DESTDIR)$(DATADIR)/man/man1/nvtaskset.1
	install -D -m 644 tools/completions/nvtaskset.bash $(DESTDIR)$(BASH_COMPLETION)
	install -D -m 644 tools/completions/_nvtaskset $(DESTDIR)$(ZSH_COMPLETION)
	install -D -m 644 tools/completions/nvtaskset.fish $(DESTDIR)$(FISH_COMPLETION)
	$(foreach document,$(documents),install -D -m 644 docs/$(document) $(DESTDIR)$(DOCDIR)/$(document) &&) true
	mkdir -p $(DESTDIR)$(UNITDIR)
	sed 's|@BINDIR@|$(BINDIR)|' share/systemd/nvtaskset-metrics.service.in \
		>$(DESTDIR)$(UNITDIR)/nvtaskset-metrics.service
	$(Q)$(if $(DESTDIR),,$(link_driver))

# The dynamic linker's cache is as of the last ldconfig. Renews it for $(1), a library, or says what programs need.
define register_library
$(Q)if /sbin/ldconfig -NXv 2>/dev/null | grep -q '^$(SHLIBDIR):' && [ -w /etc/ld.so.cache ]; then /sbin/ldconfig; else \
	echo "Programs find $(SHLIBDIR)/$(1) by LD_LIBRARY_PATH, or once ldconfig knows that directory."; fi
endef

# For programs: nvtaskset.h, and the Python module on top of it.
SHLIBDIR   ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
PYTHONDIR  ?= $(DATADIR)/nvtaskset/python
installed_api = $(INCLUDEDIR)/nvtaskset.h $(addprefix $(SHLIBDIR)/,$(notdir $(api)) libnvtaskset.so.0 libnvtaskset.so \
	libnvtaskset.a pkgconfig/nvtaskset.pc) $(PYTHONDIR)/nvtaskset.py $(DATADIR)/man/man3/nvtaskset.3
run-install: run-install-api
uninstall: uninstall-api
$(BUILD)/man/nvtaskset.3: include/nvtaskset.h tools/man/nvtaskset.3 tools/man/header.awk
	@mkdir -p $(@D)
	$(Q)awk -f tools/man/header.awk include/nvtaskset.h tools/man/nvtaskset.3 >$@
run-install-api:
	$(call make_directories,$(installed_api))
	install -D -m 644 include/nvtaskset.h $(DESTDIR)$(INCLUDEDIR)/nvtaskset.h
	install -D -m 755 $(api) $(DESTDIR)$(SHLIBDIR)/$(notdir $(api))
	ln -sf $(notdir $(api)) $(DESTDIR)$(SHLIBDIR)/libnvtaskset.so.0
	ln -sf libnvtaskset.so.0 $(DESTDIR)$(SHLIBDIR)/libnvtaskset.so
	install -D -m 644 $(api_archive) $(DESTDIR)$(SHLIBDIR)/libnvtaskset.a
	sed 's|@PREFIX@|$(PREFIX)|; s|@SHLIBDIR@|$(SHLIBDIR)|; s|@INCLUDEDIR@|$(INCLUDEDIR)|; s|@VERSION@|$(version)|' \
		src/api/nvtaskset.pc.in >$(DESTDIR)$(SHLIBDIR)/pkgconfig/nvtaskset.pc
	install -D -m 644 tools/python/nvtaskset.py $(DESTDIR)$(PYTHONDIR)/nvtaskset.py
	install -D -m 644 $(BUILD)/man/nvtaskset.3 $(DESTDIR)$(DATADIR)/man/man3/nvtaskset.3
	$(if $(DESTDIR),,$(call register_library,libnvtaskset.so.0))
uninstall-api:
	rm -f $(addprefix $(DESTDIR),$(installed_api))

# For programs written for libsmctrl.
installed_smctrl = $(INCLUDEDIR)/libsmctrl.h $(addprefix $(SHLIBDIR)/,libsmctrl.so.0 libsmctrl.so libsmctrl.a)
run-install: run-install-smctrl
uninstall: uninstall-smctrl
run-install-smctrl:
	$(call make_directories,$(installed_smctrl))
	install -D -m 644 include/libsmctrl.h $(DESTDIR)$(INCLUDEDIR)/libsmctrl.h
	install -D -m 755 $(smctrl) $(DESTDIR)$(SHLIBDIR)/libsmctrl.so.0
	ln -sf libsmctrl.so.0 $(DESTDIR)$(SHLIBDIR)/libsmctrl.so
	install -D -m 644 $(smctrl_archive) $(DESTDIR)$(SHLIBDIR)/libsmctrl.a
	$(if $(DESTDIR),,$(call register_library,libsmctrl.so.0))
uninstall-smctrl:
	rm -f $(addprefix $(DESTDIR),$(installed_smctrl))

BASH_COMPLETION = $(DATADIR)/bash-completion/completions/nvtaskset
ZSH_COMPLETION  = $(DATADIR)/zsh/site-functions/_nvtaskset
UNITDIR        ?= $(PREFIX)/lib/systemd/system
FISH_COMPLETION = $(DATADIR)/fish/vendor_completions.d/nvtaskset.fish
DOCDIR         ?= $(DATADIR)/doc/nvtaskset
documents       = $(patsubst docs/%,%,$(shell find docs -name '*.md' | sort))

define link_driver
driver=$$(/sbin/ldconfig -p | grep -v $(LIBDIR)/ | sed -n 's/^.*libcuda\.so\.1 (libc6,[^ ]*64) => //p' | head -n 1); \
	test -z "$$driver" || ln -sf "$$driver" $(LIBDIR)/libnvtaskset-driver.so.1
endef

installed_command = $(BINDIR)/nvtaskset $(addprefix $(LIBDIR)/,libcuda.so.1 libcuda.so $(notdir $(listed)) \
	libnvtaskset-attach.so libnvtaskset-audit.so libnvtaskset-driver.so.1) $(DATADIR)/man/man1/nvtaskset.1 $(BASH_COMPLETION) \
	$(ZSH_COMPLETION) $(FISH_COMPLETION) $(UNITDIR)/nvtaskset-metrics.service \
	$(addprefix $(DOCDIR)/,$(documents))
installed = $(installed_command) $(installed_api) $(installed_smctrl)
system_configuration = /etc/ld.so.conf.d/00-000-nvtaskset.conf
# Disables by the former spelling: an older version may be installed.
uninstall:
	$(Q)$(if $(DESTDIR),,! grep -qsx $(LIBDIR)/system $(system_configuration) || \
		$(BINDIR)/nvtaskset --disable-system)
	rm -f $(addprefix $(DESTDIR),$(installed_command))
	$(remove_directories)

.PHONY: uninstall may-install build-install uninstall-api uninstall-smctrl
