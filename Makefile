# SPDX-License-Identifier: Apache-2.0
# opscope: GNU make. All output goes to build/, or build-<variant>/.
#
#   make                        the program and the libraries
#   make demo                   the training program that records itself
#   make test                   the quick tests: unit, golden, command line
#   make test-process           those that start, kill and wait for processes
#   make check                  the same, after the check of the layers
#   make golden                 rewrite the golden texts; read the diff
#   make format                 clang-format over all C; format-check only looks
#   make warnings               gcc and clang with -Werror
#   make headers                every header compiles alone
#   make report                 sizes against the budgets
#   make SAN=address,undefined  the same with sanitizers, in a folder of its own
#   make V=1                    show the commands
#   make install                PREFIX=/usr/local, the folders below, DESTDIR=
#   make uninstall              what install put there, with the same settings
#   make dist                   $(B)/opscope-VERSION.tar.xz, of what is committed
#
# Python is for the tests and checks alone; the build does without it.
#
# A new .c file under src/, in a folder or one below it, or under
# tests/unit/ or tests/process/, needs no edit here.

comma   := ,
CC      ?= cc
SAN     ?=
B       ?= build$(if $(SAN),-$(subst $(comma),-,$(SAN)))
Q       := $(if $(V),,@)
PYTHON  ?= $(firstword $(wildcard /usr/bin/python3) python3)
VERSION := $(shell cat VERSION)
SOMAJOR := $(firstword $(subst ., ,$(VERSION)))

# Where things are installed. DESTDIR stands before all of them, and in none of
# the files that are installed.
PREFIX       ?= /usr/local
EXEC_PREFIX  ?= $(PREFIX)
BINDIR       ?= $(EXEC_PREFIX)/bin
LIBDIR       ?= $(EXEC_PREFIX)/lib
INCLUDEDIR   ?= $(PREFIX)/include
DATADIR      ?= $(PREFIX)/share
MANDIR       ?= $(DATADIR)/man
PKGCONFIGDIR ?= $(LIBDIR)/pkgconfig
CMAKEDIR     ?= $(LIBDIR)/cmake
BASHCOMPDIR  ?= $(DATADIR)/bash-completion/completions
ZSHCOMPDIR   ?= $(DATADIR)/zsh/site-functions
FISHCOMPDIR  ?= $(DATADIR)/fish/vendor_completions.d

OBJCOPY ?= objcopy
CFLAGS  ?= -O2 -g
ALL_CFLAGS := -std=gnu11 -Wall -Wextra -Wshadow -Wstrict-prototypes \
	-Wmissing-prototypes -Wvla $(if $(WERROR),-Werror) \
	-fvisibility=hidden -fPIC -fno-omit-frame-pointer -pthread \
	-Isrc -Iinclude -DOPS_VERSION='"$(VERSION)"' -D_GNU_SOURCE \
	$(CPPFLAGS) $(CFLAGS) $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all)
ALL_LDFLAGS := $(LDFLAGS) $(if $(SAN),-fsanitize=$(SAN))
LIBS    := -lisal -lzstd -liberty -lm -pthread
# Since glibc 2.34 the C library holds what -ldl gives; before, it does not.
RECLIBS := -pthread -ldl

SRC     := $(sort $(wildcard src/*/*.c src/*/*/*.c))
HDR     := $(sort $(wildcard src/*/*.h src/*/*/*.h include/opscope/*.h))
# Sections of this page are pages of `opscope help`.
HOWTO   := docs/how-to-record.md
OBJ     := $(patsubst src/%.c,$(B)/obj/%.o,$(SRC)) $(B)/obj/cmd/how_to_record.o
MAIN    := $(B)/obj/cmd/main.o
# The recording's format, ring/, is known on both sides. Of base/ the recorder
# has what allocates nothing.
RECOBJ  := $(filter $(B)/obj/rec/% $(B)/obj/ring/%,$(OBJ)) \
	$(B)/obj/base/text/json.o $(B)/obj/base/text/utf8.o
LIBOBJ  := $(filter-out $(B)/obj/cmd/% $(B)/obj/rec/%,$(OBJ))
UNIT    := $(patsubst tests/unit/%.c,$(B)/unit/%,\
	$(sort $(wildcard tests/unit/test_*.c)))
PROCESS := $(patsubst tests/process/%.c,$(B)/process/%,\
	$(sort $(wildcard tests/process/test_*.c)))
TESTLIB := $(B)/obj/test.a

.DELETE_ON_ERROR:
.PHONY: docs all python objects unit process test test-unit test-process check golden \
	layers format format-check report headers warnings install uninstall dist clean
# The sanitizers' run-time does not go into a shared library of ours.
all: $(B)/opscope $(B)/libopscope.a $(B)/opscope.pc \
	$(B)/libopscope-record.a $(B)/opscope-record.pc \
	$(if $(SAN),,$(B)/libopscope.so $(B)/libopscope-record.so)

objects: $(OBJ)

# The extension of CPython, beside its package: needs Python's headers, and is
# left out where there are none.
python: $(B)/libopscope.a $(B)/libopscope-record.so $(B)/opscope
	@CC='$(CC)' LIBS='$(LIBS)' sh tools/python.sh $(B) $(PYTHON)

$(B)/opscope: $(filter $(B)/obj/cmd/%,$(OBJ)) $(LIBOBJ)
	@echo "link    $@"
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)

# One object in which only the public symbols are global: a program's own
# functions may have any name.
$(B)/libopscope.a: $(LIBOBJ)
	@echo "archive $@"
	@rm -f $@
	$(Q)$(CC) -r -nostdlib -o $(B)/obj/opscope.o $^
	$(Q)$(OBJCOPY) --localize-hidden $(B)/obj/opscope.o
	$(Q)$(AR) rcs $@ $(B)/obj/opscope.o

$(B)/libopscope-record.a: $(RECOBJ)
	@echo "archive $@"
	@rm -f $@
	$(Q)$(CC) -r -nostdlib -o $(B)/obj/opscope-record.o $^
	$(Q)$(OBJCOPY) --localize-hidden $(B)/obj/opscope-record.o
	$(Q)$(AR) rcs $@ $(B)/obj/opscope-record.o

# Never unloaded: threads end after dlclose(), and then their rings are told.
$(B)/libopscope-record.so: $(RECOBJ)
	@echo "link    $@"
	$(Q)$(CC) $(ALL_LDFLAGS) -shared -Wl,-z,nodelete,--no-undefined \
	    -Wl,-soname,libopscope-record.so.$(SOMAJOR) -o $@ $^ $(RECLIBS)

# What tells other builds about a library: $(call describe,FILE) prints it.
describe = PREFIX='$(PREFIX)' EXEC_PREFIX='$(EXEC_PREFIX)' \
	LIBDIR='$(LIBDIR)' INCLUDEDIR='$(INCLUDEDIR)' CMAKEDIR='$(CMAKEDIR)' \
	VERSION='$(VERSION)' \
	LIBS='$(if $(findstring record,$(1)),$(RECLIBS),$(LIBS))' \
	sh tools/describe.sh '$(1)'

$(B)/opscope.pc $(B)/opscope-record.pc: VERSION Makefile tools/describe.sh
	@mkdir -p $(@D)
	@$(call describe,$(@F)) > $@

$(B)/libopscope.so: $(LIBOBJ)
	@echo "link    $@"
	$(Q)$(CC) $(ALL_LDFLAGS) -shared -Wl,-soname,libopscope.so.$(SOMAJOR) \
	    -Wl,--no-undefined -Wl,--exclude-libs,ALL -o $@ $^ $(LIBS)

$(B)/gen/how_to_record.c: $(HOWTO) tools/pages.sh
	@mkdir -p $(@D)
	$(Q)sh tools/pages.sh $(HOWTO) > $@

$(B)/obj/cmd/how_to_record.o: $(B)/gen/how_to_record.c Makefile VERSION
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

$(B)/obj/%.o: src/%.c Makefile VERSION
	@echo "compile $<"
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

# Unit tests see everything but main(); an archive, so that each links only
# what it uses. Removed first: ar keeps the objects of deleted files.
$(TESTLIB): $(filter-out $(MAIN),$(OBJ))
	@rm -f $@
	$(Q)$(AR) rcsT $@ $^

# What a unit test does itself need not be fast; what it tests is.
$(UNIT): TEST_CFLAGS := -O0
$(UNIT) $(PROCESS): $(B)/%: tests/%.c $(TESTLIB) Makefile
	@echo "test    $@"
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) $(TEST_CFLAGS) -MMD -MP -Itests -o $@ $< $(TESTLIB) \
	    $(ALL_LDFLAGS) -lcmocka $(LIBS)

unit: $(UNIT)
process: $(PROCESS)

test: all unit
	@$(PYTHON) tests/run --build $(B) --quick unit golden cli

check: layers
	@$(MAKE) --no-print-directory test

test-unit: unit
	@$(PYTHON) tests/run --build $(B) unit

test-process: all process
	@$(PYTHON) tests/run --build $(B) process

golden: all
	@$(PYTHON) tests/run --build $(B) --update golden

# What is printed from the tables: docs/reference.md and Python's stubs.
docs: $(B)/opscope python
	@sh tools/reference.sh $(B)/opscope > docs/reference.md
	@$(PYTHON) tools/stubs.py $(B)/python > $(B)/stubs
	@mv $(B)/stubs python/opscope/_analyses.pyi

layers:
	@$(PYTHON) tools/layers.py

# Versions of clang-format differ in what they write: 14 is Debian 12's.
C_FILES = $(sort $(HDR) $(SRC) $(wildcard demo/*.[ch] tests/*/*.[ch] \
	python/ext/*.[ch]))
format:
	$(Q)clang-format -i $(C_FILES)
format-check:
	$(Q)case $$(clang-format --version) in \
	*"version 14."*) clang-format --dry-run -Werror $(C_FILES) ;; \
	*) echo "format-check: needs clang-format 14, not looked at" ;; esac

report:
	@$(PYTHON) tools/layers.py --report

# Through a file that only includes it: what a header may rely on is itself.
CHECK_HDR := $(HDR:%=check-alone/%)
.PHONY: $(CHECK_HDR)
headers: $(CHECK_HDR)
$(CHECK_HDR): check-alone/%: %
	@printf '#include "%s"\n' \
	    "$(patsubst include/%,%,$(patsubst src/%,%,$<))" | \
	    $(CC) $(ALL_CFLAGS) -Werror -fsyntax-only -x c -

warnings:
	@$(MAKE) --no-print-directory CC=gcc B=build-gcc WERROR=1 objects
	@$(MAKE) --no-print-directory CC=clang B=build-clang WERROR=1 objects

# Everything that install puts somewhere: uninstall removes what is on this list,
# and tests/cli/install.bats finds what is not. Folders of our own go, too, when
# nothing else is in them.
D := $(DESTDIR)
LIBRARIES := opscope opscope-record
INSTALLED := $(BINDIR)/opscope $(MANDIR)/man1/opscope.1 \
	$(BASHCOMPDIR)/opscope $(ZSHCOMPDIR)/_opscope $(FISHCOMPDIR)/opscope.fish \
	$(patsubst include/%,$(INCLUDEDIR)/%,$(wildcard include/opscope/*.h)) \
	$(foreach l,$(LIBRARIES),$(LIBDIR)/lib$l.a $(LIBDIR)/lib$l.so \
	    $(LIBDIR)/lib$l.so.$(SOMAJOR) $(LIBDIR)/lib$l.so.$(VERSION) \
	    $(PKGCONFIGDIR)/$l.pc $(CMAKEDIR)/$l/$lConfig.cmake \
	    $(CMAKEDIR)/$l/$lConfigVersion.cmake)
WRITTEN := $(filter-out $(BINDIR)/opscope,$(filter %.pc %.cmake %.1 %.fish \
	%/opscope %/_opscope,$(INSTALLED)))
OWN_DIRS := $(INCLUDEDIR)/opscope $(LIBRARIES:%=$(CMAKEDIR)/%)

# The folders of a tree are known before anything is written: each is one word,
# since make splits lists at spaces, and absolute, since pkg-config needs it.
folder_is_good = $(if $(filter-out 1,$(words $(1))),$(error a folder is \
	written without spaces: '$(1)'))$(if $(filter-out /%,$(1)),$(error a \
	folder is absolute, unlike '$(1)'))
folders_are_good = $(foreach v,PREFIX EXEC_PREFIX BINDIR LIBDIR INCLUDEDIR \
	DATADIR,$(call folder_is_good,$($v)))

install: all
	$(if $(SAN),$(error a build with sanitizers is not installed))
	$(folders_are_good)
	install -d $(foreach d,$(sort $(dir $(INSTALLED))),'$(D)$d')
	install -m 755 $(B)/opscope '$(D)$(BINDIR)/opscope'
	install -m 644 include/opscope/*.h '$(D)$(INCLUDEDIR)/opscope'
	for l in $(LIBRARIES); do \
	    install -m 644 $(B)/lib$$l.a '$(D)$(LIBDIR)' && \
	    install -m 755 $(B)/lib$$l.so \
	        '$(D)$(LIBDIR)'/lib$$l.so.$(VERSION) && \
	    ln -sf lib$$l.so.$(VERSION) '$(D)$(LIBDIR)'/lib$$l.so.$(SOMAJOR) && \
	    ln -sf lib$$l.so.$(SOMAJOR) '$(D)$(LIBDIR)'/lib$$l.so || exit 1; \
	done
	$(foreach l,$(LIBRARIES),\
	    $(call describe,$l.pc) > '$(D)$(PKGCONFIGDIR)/$l.pc' && \
	    $(call describe,$lConfig.cmake) \
	        > '$(D)$(CMAKEDIR)/$l/$lConfig.cmake' && \
	    $(call describe,$lConfigVersion.cmake) \
	        > '$(D)$(CMAKEDIR)/$l/$lConfigVersion.cmake' &&) true
	$(B)/opscope help --man > '$(D)$(MANDIR)/man1/opscope.1'
	$(B)/opscope completion bash > '$(D)$(BASHCOMPDIR)/opscope'
	$(B)/opscope completion zsh > '$(D)$(ZSHCOMPDIR)/_opscope'
	$(B)/opscope completion fish > '$(D)$(FISHCOMPDIR)/opscope.fish'
	chmod 644 $(foreach f,$(WRITTEN),'$(D)$f')

uninstall:
	$(folders_are_good)
	rm -f $(foreach f,$(INSTALLED),'$(D)$f')
	for d in $(foreach d,$(OWN_DIRS),'$(D)$d'); do \
	    if [ -d "$$d" ] && [ -z "$$(ls -A "$$d")" ]; then rmdir "$$d"; fi; \
	done

# What is committed, and only that: it needs git, what it makes does not.
DIST := $(B)/opscope-$(VERSION).tar.xz
dist:
	@mkdir -p $(B)
	@[ -z "$$(git status --porcelain)" ] || \
	    echo "dist: what is not committed is not in it" >&2
	@git archive --format=tar --prefix=opscope-$(VERSION)/ -o $(DIST:.xz=) HEAD
	@xz -f -T 1 $(DIST:.xz=)
	@echo "dist    $(DIST)"

clean:
	rm -rf build build-*

include demo/demo.mk $(wildcard tests/fuzz/mutate.mk)
-include $(wildcard $(B)/obj/*/*.d $(B)/obj/*/*/*.d $(B)/unit/*.d $(B)/process/*.d)
