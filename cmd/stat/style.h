/*
 * How the page looks, in the light and in the dark.
 */
#ifndef CMD_STAT_STYLE_H
#define CMD_STAT_STYLE_H

extern const char style[];

#endif
